//! RabbitMQ for aftercommit, on lapin.
