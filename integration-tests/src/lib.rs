//! integration-tests.
