// What is measured of one answer, in milliseconds since its request was sent. No page, no clock: times are arguments.

const BIN = 250; // milliseconds of one point of the plot
const MAX_BINS = 2400; // ten minutes; what comes later is counted, but no longer drawn

export class Measurements {
  constructor(start) {
    this.start = start;
    this.first = null; // the first text, reasoning or tool call
    this.last = null;
    this.pieces = 0; // about one token each, until the provider's own count comes
    this.bins = [];
    this.usage = null; // as OpenAI has it
    this.ended = null;
  }

  /** Count a piece that came at that time. */
  add(now) {
    const at = now - this.start;
    this.first ??= at;
    this.last = at;
    this.pieces += 1;
    const bin = Math.floor(at / BIN);
    if (bin >= MAX_BINS) return;
    while (this.bins.length <= bin) this.bins.push(0);
    this.bins[bin] += 1;
  }

  /** Note the end, and the provider's token counts if it sent any. */
  end(now, usage = null) {
    this.ended = now - this.start;
    this.usage = usage;
  }

  get tokens() {
    return this.usage?.completion_tokens ?? this.pieces;
  }

  /** Whether `tokens` is the provider's count and no estimate. */
  get isCounted() {
    return this.usage?.completion_tokens !== undefined;
  }

  /** Tokens a second between the first and the last piece; null before there are two. */
  get rate() {
    const seconds = (this.last - this.first) / 1000;
    return this.pieces > 1 && seconds > 0 ? (this.tokens * (1 - 1 / this.pieces)) / seconds : null;
  }

  /** `[seconds, tokens a second]` of each part of the answer so far, but for the last, which is not whole. */
  points() {
    const scale = ((this.pieces ? this.tokens / this.pieces : 1) * 1000) / BIN;
    const whole = this.bins.length > 1 ? this.bins.slice(0, -1) : this.bins;
    return whole.map((count, index) => [((index + 0.5) * BIN) / 1000, count * scale]);
  }
}
