//! One faulty configuration per kind of fault.
