//! One consumer core for every broker: the business write and the inbox record commit in one transaction, then the broker is told.
