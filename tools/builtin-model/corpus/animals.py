"""Animals: what they say, how many legs they have, where they live, what they eat."""

from .grammar import Intent

# name, plural, sound verb, sound, legs, home, food, young, look, group
TABLE = """
dog dogs bark woof four in_a_house_with_people meat_and_bones puppy brown_or_black mammal
cat cats meow meow four in_a_house_with_people fish_and_mice kitten grey,_black_or_white mammal
cow cows moo moo four on_a_farm grass calf brown_or_white mammal
horse horses neigh neigh four on_a_farm grass_and_hay foal brown mammal
pig pigs grunt oink four on_a_farm almost_everything piglet pink mammal
sheep sheep bleat baa four on_a_farm grass lamb white mammal
goat goats bleat meh four on_a_farm_and_on_hills grass_and_leaves kid white_or_brown mammal
duck ducks quack quack two on_a_pond plants_and_small_fish duckling green_and_brown bird
hen hens cluck cluck two on_a_farm seeds_and_corn chick brown bird
owl owls hoot hoot two in_the_forest mice owlet brown bird
bird birds sing tweet two in_a_nest_in_a_tree seeds_and_worms chick of_many_colours animal_with_wings
crow crows caw caw two in_trees_and_towns almost_everything chick black bird
penguin penguins squawk squawk two on_the_cold_ice_in_the_south fish chick black_and_white bird
frog frogs croak croak four in_a_pond flies tadpole green amphibian
bee bees buzz buzz six in_a_hive the_juice_of_flowers larva yellow_and_black insect
ant ants make_almost_no_sound nothing six in_an_ant_hill almost_everything larva black_or_red insect
butterfly butterflies make_no_sound nothing six in_gardens_and_on_meadows the_juice_of_flowers caterpillar of_many_colours insect
spider spiders make_no_sound nothing eight in_a_web flies spiderling black_or_brown small_animal_but_no_insect
snake snakes hiss hiss no in_holes_in_the_ground mice snakelet green_or_brown reptile
fish fish make_almost_no_sound nothing no in_the_water plants_and_small_animals fry silver animal_of_the_water
shark sharks make_no_sound nothing no in_the_sea fish pup grey fish
whale whales sing a_deep_song no in_the_sea small_fish calf blue_or_grey mammal
dolphin dolphins click click no in_the_sea fish calf grey mammal
mouse mice squeak squeak four in_a_hole_in_the_wall cheese_and_seeds pup grey mammal
rabbit rabbits make_almost_no_sound nothing four in_a_hole_in_the_ground grass_and_carrots bunny brown_or_white mammal
fox foxes bark a_short_bark four in_the_forest mice_and_birds cub red mammal
wolf wolves howl howl four in_the_forest meat pup grey mammal
bear bears growl growl four in_the_forest fish,_berries_and_honey cub brown mammal
lion lions roar roar four in_the_dry_grass_of_Africa meat cub yellow mammal
tiger tigers roar roar four in_the_jungle_of_Asia meat cub orange_with_black_stripes mammal
elephant elephants trumpet a_loud_trumpet four in_Africa_and_Asia leaves_and_grass calf grey mammal
giraffe giraffes make_almost_no_sound nothing four in_Africa leaves_from_tall_trees calf yellow_with_brown_spots mammal
zebra zebras bark a_high_bark four in_Africa grass foal black_and_white mammal
monkey monkeys screech screech two in_trees_in_the_jungle fruit baby brown mammal
camel camels groan groan four in_the_desert dry_plants calf brown mammal
turtle turtles make_almost_no_sound nothing four in_the_sea_and_on_the_land plants hatchling green reptile
"""
FIELDS = "animal animals sound noise legs home food young look group".split()


def read_rows():
    """The table above as dictionaries."""
    rows = []
    for line in TABLE.strip().splitlines():
        row = {key: value.replace("_", " ") for key, value in zip(FIELDS, line.split(" "))}
        row["no_legs"] = "no legs at all" if row["legs"] == "no" else f"{row['legs']} legs"
        rows.append(row)
    return rows


ROWS = read_rows()
LOUD = [row for row in ROWS if row["noise"] != "nothing"]
QUIET = [row for row in ROWS if row["noise"] == "nothing"]
SOUND_ASK = [
    "what [sound|noise] does {a:animal} make", "what [sound|noise] do {animals} make", "what does {a:animal} say", "what do {animals} say", "how does {a:animal} [speak|talk|go]", "which [sound|noise] does [a|the] {animal} make", "what is the sound of {a:animal}",
    "how do {animals} [sound|talk]", "do you know what {a:animal} says", "make a sound like {a:animal}", "what [sound|noise] comes from {a:animal}", "can you [sound like|speak like] {a:animal}", "tell me the [sound|noise] of {a:animal}", "how does the {animal} go",
    "what can you hear when {a:animal} is near", "the {animal} says what", "{animal} [sound|noise]", "i hear {a:animal}, what does it say", "what is the voice of {a:animal} like", "when {a:animal} opens its mouth, what do i hear", "imitate {a:animal}", "does {a:animal} make a [sound|noise]", "what do you hear from {animals}", "the voice of {a:animal}", "how would {a:animal} say hello", "what [sound|noise] is typical for {animals}",
]


def intent(name, ask, *answer, rows=ROWS, follow=(), weight=1.3):
    return Intent("animal_" + name, ask, list(answer), rows=rows, follow=list(follow), weight=weight * 1.7)


ANIMALS = [
    intent("sound", SOUND_ASK, "{a:animal} says {noise}. We say that {animals} {sound}.", "{animals} {sound}. It sounds like {noise}.", rows=[r for r in LOUD if not r["noise"].startswith("a ")],
           follow=["and {a:animal}", "what about {a:animal}", "and what does {a:animal} say", "and the {animal}"], weight=2.0),
    intent("quiet", SOUND_ASK, "{animals} {sound}. You will hear almost nothing.", rows=QUIET, follow=["and {a:animal}", "what about {a:animal}"], weight=0.8),
    intent("legs", [
        "how many legs does {a:animal} have", "how many legs do {animals} have", "how many legs has {a:animal}", "how many [feet|legs] does [the|a] {animal} have", "does {a:animal} have legs", "do {animals} have [legs|two legs|four legs]", "count the legs of {a:animal}", "what is the number of legs of {a:animal}",
        "on how many legs does {a:animal} walk", "tell me how many legs {a:animal} has", "do you know how many legs {animals} have", "number of legs of {a:animal}", "{animal} legs", "how many legs are on {a:animal}", "what is the count of legs on {a:animal}", "has {a:animal} two or four legs", "legs of {animals}", "can you count the legs of {animals}", "{a:animal} runs on how many legs", "how many feet do {animals} walk on", "i draw {a:animal}, how many legs must i draw", "does {a:animal} have four, six or eight legs",
    ], "{a:animal} has {no_legs}.", "{animals} have {no_legs}.", follow=["and {a:animal}", "what about {a:animal}", "and how many legs does {a:animal} have", "and {animals}"], weight=1.8),
    intent("home", [
        "where does {a:animal} live", "where do {animals} live", "where is the home of {a:animal}", "what is the home of {animals}", "in what place do {animals} live", "where can i [find|see|meet] {a:animal}", "where can you find {animals}", "where would i look for {a:animal}", "do you know where {animals} live",
        "tell me where {animals} live", "where does {a:animal} sleep", "which place does {a:animal} call home", "what kind of home does {a:animal} have", "where are {animals} at home", "where do you find {a:animal}", "home of the {animal}", "in which part of the world do {animals} live", "where must i go to see {animals}", "what place is good for {a:animal}", "i look for {animals}, where are they", "where is {a:animal} at home", "the home of {animals}", "where do {animals} spend their life", "to which place do i go for {animals}",
    ], "{animals} live {home}.", "{a:animal} lives {home}. It feels at home there.", follow=["and {a:animal}", "what about {a:animal}", "and where do {animals} live", "and {animals}"], weight=1.8),
    intent("food", [
        "what does {a:animal} eat", "what do {animals} eat", "what do {animals} like to eat", "what is the food of {a:animal}", "what should i feed {a:animal}", "what [food|things] does {a:animal} eat", "what can i give {a:animal} to eat", "tell me what {animals} eat", "do you know what {a:animal} eats", "what is on the menu of {a:animal}",
        "what does the {animal} have for dinner", "which food do {animals} like", "how do you feed {a:animal}", "food for {a:animal}", "what makes {a:animal} full", "my {animal} is hungry, what can i give it", "what fills the belly of {a:animal}", "what do i put in the bowl of {a:animal}", "what would {a:animal} like for lunch", "a meal for {animals}", "what is good food for {a:animal}", "how do i feed {animals}", "what kind of food do {animals} need", "i have {a:animal}, what does it eat",
    ], "{animals} eat {food}.", "{a:animal} eats {food}. That is its favourite food.", follow=["and {a:animal}", "what about {a:animal}", "and what do {animals} eat", "and {animals}"], weight=1.8),
    intent("young", [
        "what is a baby {animal} called", "what do you call a [baby|young] {animal}", "what is the name of a [baby|young] {animal}", "how is a young {animal} called", "what are the [babies|children] of {animals} called", "what is the child of {a:animal}", "do you know the word for a baby {animal}", "baby {animal}", "a young {animal} is called what",
        "tell me the word for a young {animal}", "what does one call the baby of {a:animal}", "the child of {a:animal} is a what", "how do we call the young of {animals}", "{a:animal} gets a baby, what is it called", "a very young {animal} is a what", "word for the young of {a:animal}", "what is the young one of {animals} called", "what name has a little {animal}",
    ], "A baby {animal} is called {a:young}.", "We call a young {animal} {a:young}.", follow=["and a baby {animal}", "what about a baby {animal}", "and a young {animal}"], weight=1.4),
    intent("look", [
        "what colour is {a:animal}", "what color is {a:animal}", "what [colour|color] are {animals}", "what does {a:animal} look like", "which [colour|color] does {a:animal} have", "how do {animals} look", "tell me the [colour|color] of {a:animal}", "what [colour|color] has {a:animal}", "describe the [colour|color] of {a:animal}",
        "how does {a:animal} look", "the {animal} has which colour", "what is the [colour|color] of {animals}", "in which [colour|color] must i paint {a:animal}", "i draw {a:animal}, which [colour|color] do i need", "[colour|color] of {a:animal}", "name the [colour|color] of {animals}", "what [colour|color] do most {animals} have", "is {a:animal} [green|brown|black|white|grey]",
    ], "{a:animal} is {look}.", "Most {animals} are {look}.", follow=["and {a:animal}", "what about {a:animal}", "and {animals}"], weight=1.4),
    intent("group", [
        "is {a:animal} [a mammal|a bird|a fish|an insect|a reptile]", "what kind of animal is {a:animal}", "what [sort|type] of animal is {a:animal}", "what are {animals}", "what is {a:animal}", "are {animals} [mammals|birds|fish|insects|reptiles]", "to which group does {a:animal} belong", "tell me about {animals}", "tell me [something|more] about {a:animal}",
        "explain what {a:animal} is", "describe {a:animal}", "do you know {animals}", "what do you know about {animals}", "i saw {a:animal} [today|]", "i like {animals}", "talk about {animals}",
    ], "{a:animal} is {a:group}. It has {no_legs}, lives {home} and eats {food}.", "{animals} are {look}. {a:animal} is {a:group}, and it lives {home}.", follow=["and {a:animal}", "what about {a:animal}"], weight=2.0),
]

EXTRA = [
    Intent("animal_favourite", ["what is your favourite animal", "which animal do you like [best|most]", "do you like [animals|dogs|cats]", "do you have a pet", "what animal would you be", "which animal is the best", "do you have a favourite animal", "what is the best animal", "tell me your favourite animal", "cats or dogs"],
           ["My favourite animal is the owl, because it is awake all night like me.", "I like owls best. They see well in the dark."]),
    Intent("animal_biggest", ["what is the [biggest|largest] animal [|in the world|on earth]", "which animal is the [biggest|largest]", "what animal is very big", "who is the [biggest|largest] of all animals", "tell me the biggest animal", "is there an animal bigger than an elephant", "what is bigger than an elephant"],
           ["The blue whale is the biggest animal on earth. It lives in the sea.", "The biggest animal is the blue whale."]),
    Intent("animal_fastest", ["what is the fastest animal", "which animal [is the fastest|runs fastest|is very fast]", "who is the fastest of all animals", "which animal can run very fast", "what animal is the quickest", "tell me the fastest animal"],
           ["The cheetah is the fastest animal on land. It is a big cat.", "On land the cheetah is the fastest animal."]),
    Intent("animal_tallest", ["what is the tallest animal", "which animal [is the tallest|has the longest neck|has a long neck]", "who has a very long neck", "what animal is tall", "which animal is taller than a house", "tell me the tallest animal"],
           ["The giraffe is the tallest animal. It has a very long neck.", "The tallest animal is the giraffe."]),
]
