//! Reading server-sent events (WHATWG HTML, "Server-sent events"), as A2A streams use them.
//!
//! Invariants: the same bytes give the same events however they are cut into chunks; a frame over the
//! limit ends the reading instead of filling memory; a frame that the end of the stream cuts off is no
//! event; nothing panics. Event names, ids and retry times are not used by A2A 1.0 and are left out.

use std::collections::VecDeque;

/// Largest frame: its lines of data and the line that is being read.
pub(crate) const FRAME_LIMIT: usize = 2 * 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A frame was larger than [`FRAME_LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Turns chunks into the data of events.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The line that has begun.
    line: Vec<u8>,
    /// The data lines of the frame that has begun, joined.
    data: Option<Vec<u8>>,
    /// The last chunk ended with a carriage return: a line feed at the start of the next belongs to it.
    after_cr: bool,
    /// The first line, which may open with a byte order mark, is over.
    begun: bool,
    ready: VecDeque<String>,
}

impl Decoder {
    /// Takes the next bytes. Frames that were complete before the one that is too large can still be
    /// taken by [`Decoder::next`].
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, tail) = rest.split_at(end);
            self.extend(line)?;
            self.line_ended();
            rest = tail.get(1..).unwrap_or_default();
            if tail.first() == Some(&b'\r') {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.extend(rest)
    }

    /// The data of the next complete event.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.ready.pop_front()
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if held + bytes.len() > FRAME_LIMIT {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line_ended(&mut self) {
        let line = std::mem::take(&mut self.line);
        let first = !std::mem::replace(&mut self.begun, true);
        let line = if first { line.strip_prefix(BOM).unwrap_or(&line) } else { &line };
        if line.is_empty() {
            if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
                self.ready.push_back(String::from_utf8_lossy(&data).into_owned());
            }
            return;
        }
        // A line that opens with a colon is a comment; one without any is a field without a value.
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => {
                let (field, rest) = line.split_at(colon);
                let value = rest.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        if field == b"data" {
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(chunks: &[&[u8]]) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut events = vec![];
        for chunk in chunks {
            decoder.push(chunk).unwrap();
            while let Some(event) = decoder.next() {
                events.push(event);
            }
        }
        events
    }

    /// A2A case 46.
    #[test]
    fn comments_line_ends_names_and_several_data_lines() {
        let text = b"\xef\xbb\xbf: ping\n\nevent: x\nid: 7\nretry: 5\ndata: {\"a\":\ndata: 1}\n\n\
            data:no space\r\rdata:  two\r\n\r\ndata\n\ndata:\n\nother: x\n\ndata: cut off";
        assert_eq!(read(&[text]), ["{\"a\":\n1}", "no space", " two"]);
    }

    #[test]
    fn a_line_end_that_two_chunks_share_is_one() {
        assert_eq!(read(&[b"data: a\r", b"\n", b"\r", b"\ndata: b\r", b"", b"\n\r\n"]), ["a", "b"]);
        assert_eq!(read(&[b"data: a\r", b"data: b\r", b"\r"]), ["a\nb"]);
    }

    /// A2A case 46: a frame without an end is not held, whatever its lines are.
    #[test]
    fn a_frame_over_the_limit_ends_the_reading() {
        let line = vec![b'x'; 1024];
        for (start, end) in [("data: ", "\n"), ("data: ", ""), (": ", "")] {
            let mut decoder = Decoder::default();
            decoder.push(b"data: before\n\n").unwrap();
            let mut pushed = 0;
            let refused = loop {
                let chunk = [start.as_bytes(), &line, end.as_bytes()].concat();
                pushed += chunk.len();
                if decoder.push(&chunk).is_err() {
                    break pushed;
                }
                assert!(pushed <= FRAME_LIMIT + 64 * 1024, "{start:?} {end:?} is held without an end");
            };
            assert!(refused > FRAME_LIMIT - 64 * 1024, "{start:?}: refused at {refused}");
            assert_eq!(decoder.next().as_deref(), Some("before"));
        }
        // Comments that end are no part of a frame.
        let mut decoder = Decoder::default();
        for _ in 0..4096 {
            decoder.push(&[b": ", line.as_slice(), b"\n"].concat()).unwrap();
        }
    }

    proptest! {
        /// A2A case 46: any events, any legal spelling, any chunking.
        #[test]
        fn any_chunking_gives_the_same_events(
            events in prop::collection::vec(prop::collection::vec("[^\r\n\u{feff}]{0,12}", 1..4), 0..6),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 1..8),
            cuts in prop::collection::vec(1_usize..9, 1..8),
            noise in prop::collection::vec(prop::sample::select(vec!["", ": c", "id: 1", "event: e", ":"]), 1..6),
        ) {
            let mut text = String::new();
            let mut end = ends.iter().cycle();
            let mut noise = noise.iter().cycle();
            for event in &events {
                for line in event {
                    let extra = *noise.next().unwrap();
                    if !extra.is_empty() {
                        text += extra;
                        text += end.next().unwrap();
                    }
                    text += "data: ";
                    text += line;
                    text += end.next().unwrap();
                }
                // A lone carriage return before a line feed would be one line end, not two.
                text += "\n";
                if text.ends_with("\r\n") {
                    text += "\n";
                }
            }
            let bytes = text.as_bytes();
            let mut chunks = vec![];
            let (mut at, mut cut) = (0, cuts.iter().cycle());
            while at < bytes.len() {
                let to = (at + cut.next().unwrap()).min(bytes.len());
                chunks.push(&bytes[at..to]);
                at = to;
            }
            let wanted: Vec<String> =
                events.iter().map(|lines| lines.join("\n")).filter(|data| !data.is_empty()).collect();
            prop_assert_eq!(read(&chunks), wanted);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8)) {
            let mut decoder = Decoder::default();
            for chunk in &chunks {
                let _ = decoder.push(chunk);
                while decoder.next().is_some() {}
            }
        }
    }
}
