-- Push notification configurations at runtimes: where and with what they may call us. Secrets are kept as
-- hashes only. new: asked for, not known to be made. live: made. ending: to be deleted there, then here.
CREATE TABLE watches (
  id              TEXT PRIMARY KEY,
  runtime         TEXT NOT NULL,
  task            TEXT NOT NULL,
  context         TEXT,
  seen_as         TEXT,
  path_hash       TEXT NOT NULL UNIQUE,
  credential_hash TEXT NOT NULL,
  token_hash      TEXT NOT NULL,
  state           TEXT NOT NULL CHECK (state IN ('new', 'live', 'ending')),
  -- How often the runtime has called: a reading answers the calls before it.
  hints           BIGINT NOT NULL DEFAULT 0,
  made_ms         BIGINT NOT NULL,
  -- The next reading; of an ending one, the next attempt to delete it.
  due_ms          BIGINT NOT NULL
);
CREATE UNIQUE INDEX watches_task ON watches (runtime, task) WHERE state <> 'ending';
CREATE INDEX watches_due ON watches (runtime, due_ms);
