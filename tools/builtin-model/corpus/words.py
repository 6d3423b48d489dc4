"""Words and numbers: opposites, rhymes, colours of things, sums, counting, days and months."""

from .grammar import Intent

OPPOSITES = """big small|hot cold|up down|day night|good bad|fast slow|old young|happy sad|light dark|long short|high low|left right|open closed|full empty|wet dry|hard soft|strong weak|rich poor|early late|near far|first last|loud quiet
black white|yes no|in out|on off|love hate|win lose|heavy light|clean dirty|sweet sour|thick thin|wide narrow|summer winter|question answer|before after|always never|true false|come go|give take|north south|east west|morning evening"""
RHYMES = """cat hat mat|dog frog log|house mouse blouse|sun fun run|moon spoon soon|tree bee sea|night light right|star car far|day play way|rain train plane|bear chair hair|fish dish wish|cake lake snake|book cook look|ring sing king|nose rose toes|bed red head
ball tall wall|sky fly high|fox box socks|snow go blow|green queen bean|boat goat coat|door floor more|hand sand land|bell tell well|game name same|time rhyme lime|king ring thing|ten pen hen|tab crab lab|blue shoe two|lap cap map|hop top shop|bread red bed"""
COLOURS = """the sky|blue;the sun|yellow;grass|green;snow|white;a banana|yellow;an apple|red or green;a tomato|red;the sea|blue;blood|red;milk|white;coal|black;a carrot|orange;an orange|orange;the night|black;a leaf|green;a lemon|yellow;a strawberry|red;chocolate|brown;a cloud|white or grey
the moon|white or yellow;a rose|red;wood|brown;fire|red and yellow;a cucumber|green;an egg|white or brown;gold|yellow;rain|clear, it has no colour;salt|white;a plum|purple;the ground|brown;a cherry|red;coffee|brown or black;paper|white;a pea|green;cheese|yellow;a stone|grey;water|clear, it has no colour"""
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
SEASON_OF = ["winter"] * 2 + ["spring"] * 3 + ["summer"] * 3 + ["autumn"] * 3 + ["winter"]


def lines(table, separator="|"):
    """The cells of a small table in a string."""
    return [cell for line in table.splitlines() for cell in line.split(separator)]


def both_ways(pairs):
    return [row for left, right in pairs for row in ({"word": left, "other": right}, {"word": right, "other": left})]


def first_wins(rows):
    """Keeps one answer per word, so that the same question never has two."""
    return list({row["word"]: row for row in reversed(rows)}.values())


def sum_rows():
    """Small sums, differences and products."""
    plus = [{"a": a, "b": b, "c": a + b} for a in range(11) for b in range(11)]
    minus = [{"a": a, "b": b, "c": a - b} for a in range(13) for b in range(a + 1)]
    times = [{"a": a, "b": b, "c": a * b} for a in range(6) for b in range(6)]
    return tuple([dict(row, wa=NUMBERS[row["a"]], wb=NUMBERS[row["b"]]) for row in rows] for rows in (plus, minus, times))


def sum_asks(sign, word):
    return [f"what is {{a}} {word} {{b}}", f"what is {{a}} {sign} {{b}}", f"{{a}} {sign} {{b}}", f"{{a}}{sign}{{b}}", f"{{a}} {sign} {{b}} =", f"how much is {{a}} {word} {{b}}", f"how much is {{a}} {sign} {{b}}", f"what is {{wa}} {word} {{wb}}", f"can you [compute|work out] {{a}} {sign} {{b}}", f"what does {{a}} {word} {{b}} make",
            f"how much is {{wa}} {word} {{wb}}", f"{{a}} {word} {{b}}", f"do you know what {{a}} {word} {{b}} is", f"tell me {{a}} {word} {{b}}", f"calculate {{a}} {sign} {{b}}", f"please add up: {{a}} {sign} {{b}}", f"i need the result of {{a}} {word} {{b}}", f"{{wa}} {word} {{wb}} is what"]


PLUS, MINUS, TIMES = sum_rows()
DAY_ROWS = [{"day": d, "next": DAYS[(i + 1) % 7], "before": DAYS[i - 1]} for i, d in enumerate(DAYS)]
MONTH_ROWS = [{"month": m, "next": MONTHS[(i + 1) % 12], "before": MONTHS[i - 1], "season": SEASON_OF[i], "number": NUMBERS[i + 1]} for i, m in enumerate(MONTHS)]
COUNT_ROWS = [{"n": n, "w": NUMBERS[n], "list": ", ".join(map(str, range(1, n + 1)))} for n in range(3, 21)]
NEXT_ROWS = [{"n": n, "next": n + 1, "before": n - 1} for n in range(1, 31)]
COLOUR_ROWS = [dict(zip(("thing", "colour"), cell.split("|"))) for cell in lines(COLOURS, ";")]
OPPOSITE_ROWS = first_wins(both_ways([pair.split() for pair in lines(OPPOSITES)]))
RHYME_ROWS = [dict(zip(("word", "r1", "r2"), cell.split())) for cell in lines(RHYMES)]

WORDS = [
    Intent("opposite", ["what is the opposite of {word}", "opposite of {word}", "what is the contrary of {word}", "[tell|give] me the opposite of {word}", "which word is the opposite of {word}", "do you know the opposite of {word}", "what is not {word}", "the opposite of {word} is what", "can you tell me the opposite of {word}", "if it is not {word}, what is it",
                        "what do you call the opposite of {word}", "find the opposite of {word}", "name the opposite of {word}", "{word} and its opposite", "say the opposite of {word}", "what word means the opposite of {word}", "what is the other side of {word}", "i look for the opposite of {word}", "the opposite of {word}, please", "which word is as far from {word} as can be", "one thing is {word} and the other is what", "opposite: {word}", "i say {word}, you say the opposite", "help me find the opposite of {word}"],
           ["The opposite of {word} is {other}."], rows=OPPOSITE_ROWS, follow=["and {word}", "and of {word}", "what about {word}", "and the opposite of {word}"], weight=4.5),
    Intent("rhyme", ["what rhymes with {word}", "what word rhymes with {word}", "[tell|give] me a rhyme [for|on|with] {word}", "which words rhyme with {word}", "find a rhyme for {word}", "do you know a rhyme for {word}", "a rhyme for {word}", "what sounds like {word}", "i need a [word|rhyme] that [goes with|sounds like|rhymes with] {word}", "can you rhyme {word}", "rhyme with {word}",
                     "make a rhyme with {word}", "say a word that rhymes with {word}", "{word} rhymes with what", "which word sounds like {word}", "words that end like {word}", "a word with the sound of {word}", "i want a rhyme: {word}", "my poem ends with {word}, what rhymes", "help me rhyme {word}", "{word}: give me a rhyme"],
           ["{word} rhymes with {r1}.", "{word} rhymes with {r1} and {r2}."], rows=RHYME_ROWS, follow=["and {word}", "what about {word}", "and what rhymes with {word}"], weight=2.4),
    Intent("colour", ["what [colour|color] is {thing}", "what [colour|color] has {thing}", "which [colour|color] is {thing}", "what is the [colour|color] of {thing}", "tell me the [colour|color] of {thing}", "do you know the [colour|color] of {thing}", "which [colour|color] does {thing} have", "{thing} has what [colour|color]", "name the [colour|color] of {thing}", "what [colour|color] do you see when you look at {thing}",
                      "how is {thing} coloured", "can you tell me what [colour|color] {thing} is", "[colour|color] of {thing}", "if i paint {thing}, which [colour|color] do i need", "i want to draw {thing}, which [colour|color] do i take"],
           ["The colour of {thing} is {colour}.", "{thing} is {colour}."], rows=COLOUR_ROWS, follow=["and {thing}", "what about {thing}", "and what colour is {thing}"], weight=2.6),
    Intent("plus", sum_asks("+", "plus") + ["add {a} and {b}", "what do you get when you add {a} and {b}", "what is the sum of {a} and {b}", "sum of {a} and {b}", "i have {a} apples and get {b} more, how many apples do i have", "{a} and {b} together is what", "if i add {b} to {a}, what is it", "{a} and then {b} more makes what", "put {a} and {b} together", "{a} birds sit in a tree and {b} more come, how many are there", "what number do i get from {a} plus {b}", "what comes out of {a} plus {b}", "there are {a} tabs and {b} join, how many are there now"], ["{a} plus {b} is {c}."], rows=PLUS, weight=4.5),
    Intent("minus", sum_asks("-", "minus") + ["what is left when you take {b} from {a}", "take {b} away from {a}", "i have {a} apples and eat {b}, how many are left", "subtract {b} from {a}", "{a} without {b}", "what remains of {a} when {b} are gone", "there are {a} tabs and {b} close, how many are left", "what comes out of {a} minus {b}", "what number is {a} less {b}"], ["{a} minus {b} is {c}."], rows=MINUS, weight=3.5),
    Intent("times", sum_asks("*", "times") + sum_asks("x", "times")[1:5] + ["multiply {a} by {b}", "what is {a} multiplied by {b}"], ["{a} times {b} is {c}."], rows=TIMES, weight=1.2),
    Intent("count", ["count to {n}", "[can|could] you count to {n}", "count from one to {w}", "count from 1 to {n}", "count up to {n}", "please count to {w}", "show me how you count to {n}", "say the numbers from 1 to {n}", "how do you count to {n}", "i want you to count to {w}", "let me hear you count to {n}", "list the numbers up to {n}", "name all numbers to {n}", "counting to {n}"],
           ["{list}."], rows=COUNT_ROWS, weight=1.2),
    Intent("next_number", ["what [number|] comes after {n}", "which number is after {n}", "what is the next number after {n}", "what follows {n}", "the number after {n}", "tell me the number after {n}", "which number comes next after {n}", "what number is one more than {n}"], ["After {n} comes {next}."], rows=NEXT_ROWS, weight=0.8),
    Intent("number_before", ["what [number|] comes before {n}", "which number is before {n}", "the number before {n}", "tell me the number before {n}", "what number is one less than {n}", "which number comes right before {n}"], ["Before {n} comes {before}."], rows=NEXT_ROWS, weight=0.6),
    Intent("day_after", ["what day comes after {day}", "which day is after {day}", "what is the day after {day}", "today is {day}, what is tomorrow", "if today is {day}, what day is tomorrow", "the day after {day}", "what follows {day}", "tell me the day after {day}", "which day follows {day}", "what comes after {day}", "tomorrow, when today is {day}", "{day} is over, which day begins", "which day do we have when {day} is over", "next day after {day}", "we have {day}, what comes next", "it is {day}, and tomorrow"], ["The day after {day} is {next}.", "After {day} comes {next}."], rows=DAY_ROWS, follow=["and after {day}", "what about {day}"], weight=1.8),
    Intent("day_before", ["what day comes before {day}", "which day is before {day}", "what is the day before {day}", "today is {day}, what was yesterday", "if today is {day}, what day was yesterday", "the day before {day}", "tell me the day before {day}", "what comes before {day}"], ["The day before {day} is {before}.", "Before {day} comes {before}."], rows=DAY_ROWS, weight=1.0),
    Intent("week", ["what are the days of the week", "[name|list|tell me|say] the days of the week", "how many days [has|are in] a week", "how many days does a week have", "which days are there", "name all days", "how long is a week", "can you name the seven days", "what days are in a week", "do you know the days of the week"],
           ["A week has seven days: Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday."], weight=1.2),
    Intent("weekend", ["what is the weekend", "when is the weekend", "which days are the weekend", "what days are weekend", "do you like the weekend", "what is a weekend", "is it weekend", "on which days do people not work"], ["The weekend is Saturday and Sunday. Many people rest on these days."]),
    Intent("month_after", ["what month comes after {month}", "which month is after {month}", "what is the month after {month}", "the month after {month}", "tell me the month after {month}", "which month follows {month}", "what comes after {month}", "it is {month}, what is the next month", "{month} is over, what month is it now", "what do we call the month behind {month}", "when {month} ends, which month begins", "next month after {month}", "we have {month}, and then"], ["After {month} comes {next}.", "The month after {month} is {next}."], rows=MONTH_ROWS, weight=1.8),
    Intent("month_before", ["what month comes before {month}", "which month is before {month}", "what is the month before {month}", "the month before {month}", "tell me the month before {month}", "what comes before {month}"], ["Before {month} comes {before}."], rows=MONTH_ROWS, weight=0.8),
    Intent("month_season", ["in [what|which] season is {month}", "what season is {month}", "is {month} in [summer|winter|spring|autumn]", "which season does {month} belong to", "what is the weather season in {month}", "{month} is in which season", "tell me the season of {month}", "is it [summer|winter|cold|warm] in {month}"], ["{month} is in {season}. That is so in the north of the world."], rows=MONTH_ROWS, weight=1.2),
    Intent("year", ["how many months [has|are in] a year", "how many months does a year have", "what are the months", "[name|list|say|tell me] [all|] the months [of the year|]", "which months are there", "how many days [has|are in] a year", "how long is a year", "do you know the months", "can you name the twelve months"],
           ["A year has twelve months and 365 days. It begins with January and ends with December."], weight=1.2),
    Intent("seasons", ["what are the [four|] seasons", "how many seasons are there", "how many seasons [has|are in] a year", "name the seasons", "which seasons are there", "what is a season", "list the seasons", "tell me the seasons", "do you know the seasons", "what comes after [spring and summer|all the seasons]"],
           ["There are four seasons: spring, summer, autumn and winter."], weight=1.2),
]
