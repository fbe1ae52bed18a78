//! Why somebody may answer, or not (being written).
