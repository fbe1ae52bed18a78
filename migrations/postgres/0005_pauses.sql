-- Runtimes to which no answers are sent; `*` is every runtime, also one that is configured later.
CREATE TABLE pauses (
  runtime  TEXT PRIMARY KEY,
  since_ms BIGINT NOT NULL
);
