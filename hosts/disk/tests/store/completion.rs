//! The ways to take outcomes: none is lost, whoever asks and however.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use reprise_disk::Get;

use crate::fixture::{HISTORY, WINDOW, check, filled, get, gets_of, key};

/// Runs a future on this thread, which sleeps until it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_task_that_waits_for_a_batch_is_not_left_asleep() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let gets = gets_of(HISTORY);
    let mut batch = store.get_batch(&gets, None);
    let seen = block_on(async {
        let mut seen = 0;
        while let Some((index, got)) = poll_fn(|context| batch.poll_next(context)).await {
            check(&gets[index], got).unwrap();
            seen += 1;
        }
        seen
    });
    assert_eq!(seen, gets.len());
}

#[test]
fn a_loop_that_only_asks_now_and_then_does_not_miss_an_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let gets = gets_of(WINDOW);
    let mut batch = store.get_batch(&gets, None);
    let mut seen = 0;
    loop {
        match batch.try_next() {
            Poll::Pending => thread::yield_now(),
            Poll::Ready(None) => break,
            Poll::Ready(Some((index, got))) => {
                check(&gets[index], got).unwrap();
                seen += 1;
            }
        }
    }
    assert_eq!(seen, gets.len());
}

#[test]
fn a_callback_does_not_miss_an_outcome_and_is_let_go_after_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let gets = gets_of(HISTORY);
    let (sender, receiver) = mpsc::channel();
    let asked = gets.clone();
    store.get_batch(&gets, None).on_each(move |index, got| {
        check(&asked[index], got).unwrap();
        sender.send(index).unwrap();
        ControlFlow::Continue(())
    });
    // The channel closes when the callback is dropped.
    let mut seen: Vec<usize> = receiver.into_iter().collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..gets.len()).collect::<Vec<_>>());
}

#[test]
fn a_callback_that_breaks_or_panics_is_not_called_again_and_costs_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let gets: Vec<Get> = (0..20).flat_map(|_| gets_of(HISTORY)).collect();
    for panics in [false, true] {
        let (sender, receiver) = mpsc::channel();
        store.get_batch(&gets, None).on_each(move |index, _| {
            sender.send(index).unwrap();
            assert!(!panics, "a callback that panics, as it should");
            ControlFlow::Break(())
        });
        assert_eq!(receiver.into_iter().count(), 1);
    }
    get(&store, HISTORY, 3, &key(0, 3)).unwrap();
    let gets = gets_of(HISTORY);
    store.get_batch(&gets, None).for_each(|(index, got)| check(&gets[index], got).unwrap());
}
