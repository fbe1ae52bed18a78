//! A connection to a chat platform that can be taken up where it ended.

/// What is needed to go on (Discord: Resume). The sequence may be older than what was read last: events then
/// come once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub id: String,
    pub seq: i64,
    /// Where to go on.
    pub resume_url: String,
}
