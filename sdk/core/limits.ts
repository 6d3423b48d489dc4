/**
 * The bounds that peers meet or that files share, and the reason for each. Sizes in bytes, times in milliseconds.
 * What a peer or a client controls is checked against them before anything is allocated. Not here: the maxima
 * of single message fields, which stand in their schema (`sdk/protocol`), and a file's own constants.
 */

/** Pieces are cut at 8 MiB: small enough to retry, large enough that a hub's request limits aren't met. */
export const PIECE_BYTES = 8 * 1024 * 1024
/** A manifest is JSON; the largest known model (80 layers, a few pieces each) is well under 1 MB. */
export const MANIFEST_MAX_BYTES = 4 * 1024 * 1024

/** Layers of a model: with embedding and head 1,000 blocks, and as many stages at most in a route. */
export const LAYERS_MAX = 998

/** Data-channel message, header included: Chromium, Firefox, node-datachannel and werift all take 64 KiB. */
export const CHUNK_BYTES = 64 * 1024
/** Largest frame: 512 prefill tokens of an 8,192-wide f32 hidden state, and some. */
export const FRAME_MAX_BYTES = 32 * 1024 * 1024
/** Tokens per prefill frame; several are in flight, so stages overlap. */
export const PREFILL_CHUNK_TOKENS = 32
/** End-to-end credit of a sender in a tab. Larger windows make Chromium stall for seconds. */
export const CREDIT_BYTES = 256 * 1024
/** Local guard on `bufferedAmount`: stop above, resume at the low mark. */
export const BUFFER_HIGH_BYTES = 256 * 1024
export const BUFFER_LOW_BYTES = 64 * 1024

/** Heartbeat on the control lane, answered off the compute thread; hidden tabs tick once a second. */
export const HEARTBEAT_MS = 1_000
export const SUSPECT_MS = 2_000
export const DEAD_MS = 3_000
/** A device that is connected and not heard for this long loses its blocks to others, if there are any. */
export const ABSENT_MS = 8_000
/** A failed gathering gives no event; local connects took 0.5 s at most. */
export const CONNECT_MS = 5_000
export const CONNECT_TRIES = 2
/** Hellos of a link are repeated until answered: the other end may not listen yet. */
export const HANDSHAKE_REPEAT_MS = 500
/** The relay ends the ladder: the other end may need all its direct tries to notice. */
export const RELAY_OPEN_MS = 15_000
/** A frame that makes no step for this long, either way, ends its link: nobody takes the data. */
export const SEND_STALL_MS = 15_000
/** Signals that came before their pair was opened here: kept for this many pairs, this many each. */
export const EARLY_PAIRS_MAX = 64
export const EARLY_SIGNALS_MAX = 64

/** Messages of a link that nobody listens to yet: more than a handshake needs, less than would hurt. */
export const EARLY_MESSAGES_MAX = 64
/** Frames of a channel that nobody listens to yet: only small ones get that many, bulk is bounded by its credit. */
export const EARLY_FRAMES_MAX = 256
/** Relayed messages before a pair's order: the hellos of both lanes, twice. */
export const EARLY_RELAYED_MAX = 4

/**
 * Signaling: JSON messages; sockets close on anything larger. The largest is a prompt: PROMPT_MAX_TOKENS ids of
 * six digits with their commas are 0.9 MiB. Signals (SDP) are a few kB.
 */
export const CONTROL_MESSAGE_MAX_BYTES = 1024 * 1024
/** The message of an error on the wire, characters; a longer one is cut by whoever sends it. */
export const WIRE_MESSAGE_MAX = 600
/** socket.io's own cap: the largest message with its envelope, and a refusal in words for what is a little larger. */
export const SOCKET_MESSAGE_MAX_BYTES = 4 * 1024 * 1024
/** Messages per second and peer, averaged. Tokens and timings count apart. */
export const CONTROL_RATE_PER_SECOND = 400
export const CONTROL_BURST = 2_000
/**
 * Tokens and timings per second of a last stage: a tab that holds a small model alone makes about 3,000. The
 * burst holds what such a tab sends while the host stands still for two seconds.
 */
export const TOKEN_RATE_PER_SECOND = 4_000
export const TOKEN_BURST = 8_000
/** Relay bytes per second and peer: enough for a prefill, too little to starve the host. */
export const RELAY_BYTES_PER_SECOND = 32 * 1024 * 1024
/** Workers; as many askers and watchers besides, so that neither side can shut the other out. */
export const PEERS_MAX = 256
export const NAME_MAX_CHARS = 60
/** Tokens in one request, prompt and answer, whatever the model's window. */
export const PROMPT_MAX_TOKENS = 131_072
/** Tokens that end an answer: 64 of the asker's, and as many of the model's. */
export const STOP_IDS_MAX = 128

/** Time limits of single waits. */
export const STORAGE_CALL_MS = 10_000
export const FETCH_STALL_MS = 15_000
export const FETCH_TRIES = 4
export const STAGE_LOAD_MS = 180_000
/** First runs compile shaders: seconds on a software adapter. */
export const STAGE_STEP_MS = 60_000
export const SESSION_OPEN_MS = 15_000
/** A session in which no stage gets on, and none computes, has lost a frame: it gets a new epoch. */
export const SESSION_STALL_MS = 15_000
/**
 * What goes wrong at a device within so long is one incident, however many answers it ends: a provider that was lost is
 * started anew, tested and loaded by then.
 */
export const INCIDENT_MS = 10_000
/** What an asker, or a session of which a stage computes, waits for the next token. */
export const SESSION_IDLE_MS = 90_000
export const HELLO_MS = 10_000
/** Pauses between reconnects grow from the first to the last, with jitter, so that a restarted host isn't stormed. */
export const RECONNECT_FIRST_MS = 500
export const RECONNECT_LAST_MS = 10_000
/** A peer that lost its socket keeps its place this long. */
export const REJOIN_MS = 5_000

/** A device that came back counts with its former pledge this long; reading the manifest takes part of it. */
export const PLEDGE_MS = 15_000

/** KV caches grow in steps of this many rows, since WASM copies the whole capacity in. */
export const KV_STEP_ROWS = 256
/** Sessions that a stage keeps caches for at once. */
export const SESSIONS_PER_STAGE = 8
export const REQUESTS_QUEUED_MAX = 16
/** Answers that lost their host come back at once, those that ran and those that waited. */
export const RESUMED_QUEUED_MAX = 64
/** Of one asker, waiting or running: nobody can fill the queue alone. */
export const REQUESTS_PER_ASKER = 4
/**
 * A question waits this long for its turn: with a full queue four rounds of answers are before it, two and
 * a half minutes each.
 */
export const QUEUE_WAIT_MS = 600_000
/** A broken answer waits this long for devices that are on their way to take over: to fetch and load their layers. */
export const REPAIR_MS = 60_000
/**
 * An answer that is asked for again waits this long for a ring of which nobody is on the way: after a restart of the
 * host every device is back by then, the longest pause between two tries being half as long again as RECONNECT_LAST_MS.
 */
export const RETURN_MS = 20_000
/**
 * An asker that lost its host waits this long for it before an answer is given up: longer than a restart and the
 * longest pause between two tries.
 */
export const RESUME_MS = 60_000
/** Losses of the host without a token in between after which an answer is given up: that line won't bring it. */
export const LOSSES_MAX = 8
/**
 * Hidden states that a device keeps of its sessions to send them again: 4,000 tokens of four sessions 1,024 wide.
 * What does not fit is computed again from the tokens.
 */
export const REPLAY_BYTES = 64 * 1024 * 1024
/** A page that is out of sight for so long may stay so, and browsers stop such pages: its answers go to others. */
export const HANDOVER_HIDDEN_MS = 5_000
/** An answer that a hidden page held, or whose last move broke, isn't moved again sooner: each move computes its text anew. */
export const HANDOVER_PAUSE_MS = 30_000
/** Caches are kept so long after an answer: the next question of a conversation begins with the same text. */
export const RETAIN_MS = 300_000
/** Sessions that a stage keeps for that; with SESSIONS_AT_ONCE they are SESSIONS_PER_STAGE. */
export const RETAINED_PER_STAGE = 4
/** A text in common that is shorter is not worth a former session. */
export const RETAINED_ROWS_MIN = 16
/** Answers that the ring computes at once; more wait. A stage keeps caches for twice as many. */
export const SESSIONS_AT_ONCE = 4
/**
 * Answers that run when the host is told to serve another model have this long to end: most do, and whoever
 * waits for the new model does not wait for the longest.
 */
export const MODEL_DRAIN_MS = 60_000
/** A link that is neither open nor closed after this long is tried anew: longer than the whole ladder. */
export const PAIR_OPEN_MS = 40_000
/** Pause before a failed link is tried again; doubles with each failure up to the maximum. */
export const PAIR_RETRY_MS = 250
export const PAIR_RETRY_MAX_MS = 10_000
/** A link that nobody needs any more is kept this long, in case the route comes back. */
export const PAIR_LINGER_MS = 10_000
/**
 * What may wait for a slow receiver before it is cut off: the largest prompts of SESSIONS_AT_ONCE sessions, twice,
 * since a ring of one device gets each as a history too. Credits keep relayed bytes far below.
 */
export const UNSENT_MAX_BYTES = 8 * 1024 * 1024
/** Snapshots of the swarm go out at most this often. */
export const SNAPSHOT_MS = 250
/** Messages that break the protocol before the host hangs up. */
export const BAD_MESSAGES_MAX = 5
/** Relay bytes of one peer that wait for its share; a peer that keeps to its credits stays far below. */
export const RELAY_QUEUE_BYTES = 8 * 1024 * 1024

/** Of pieces that a device already has a device in want is told at most this many sources at once: they fill a line. */
export const PIECE_SOURCES = 3
/** A link for less is not worth its making: the host gives that much sooner. */
export const PIECE_WORTH_BYTES = 1024 * 1024
/** Devices that one device serves at once: each then has its share of an uplink. */
export const PIECE_READERS = 2
/** Pieces that a device sends at once, over all of its links: each lies in memory meanwhile. */
export const PIECES_SERVED = 2
/** Requests of one device that wait for their answer: more than an honest one has, stopped ones included. */
export const PIECE_REQUESTS_MAX = 16
/** Pieces that are wanted of one source at once: the second hides the way of the request. */
export const PIECES_PER_SOURCE = 2
/** Of a piece in one frame: a frame that fits one chunk needs no assembly. */
export const PIECE_PART_BYTES = 60 * 1024
/** Hashes in one frame of a piece link; longer lists take several. */
export const PIECE_HASHES_MAX = 4_096
/** While it computes answers a device gives this much per second: more than the floor for each reader. */
export const PIECE_BUSY_BYTES_PER_SECOND = 1024 * 1024
/** A source below this over PIECE_FLOOR_MS is left: the host gives more on a slow line. */
export const PIECE_FLOOR_BYTES_PER_SECOND = 256 * 1024
export const PIECE_FLOOR_MS = 5_000
/** A source that owes bytes and sends none for so long is left, as HB2 does with a link. */
export const PIECE_SILENCE_MS = 3_000
/** A source that is busy is asked again after this. */
export const PIECE_BUSY_MS = 500
/** Links to sources get so long to come up before the host is asked. */
export const PIECE_LINK_WAIT_MS = 2_000
/** The host helps with what peers would take longer for. */
export const PIECE_HELP_MS = 20_000
/** A piece link that is not open after this won't be: both direct tries are over. */
export const PIECE_LINK_MS = 15_000
/** How often the host looks for more sources, beside when an order goes out or a link ends. */
export const PIECE_SEEK_MS = 500
/** A source whose link failed or ended is named again to the same device no sooner than this. */
export const PIECE_RETRY_MS = 30_000
/** So many devices must say that a source sent wrong bytes before it is no source for anybody: one alone may lie. */
export const PIECE_ACCUSERS = 2
