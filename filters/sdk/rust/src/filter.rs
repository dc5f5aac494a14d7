use core::cell::UnsafeCell;

use crate::error::Failure;
use crate::host::{fail, write_log, Level};
use crate::message::Message;

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on, with the edits made.
    Keep = 0,
    /// It is gone, counted as dropped. What was emitted behind it goes on.
    Drop = 1,
    /// It goes on with the edits made, past the rest of this route's filters.
    Skip = 2,
    /// It goes to the dead letters as it came to this filter, with the text given to [`fail`].
    Reject = 3,
    /// What this call edited, emitted and routed is undone, and the filter's `on_error` decides.
    Failed = -1,
}

/// What a filter's function can return: a [`Verdict`], or a `Result` whose error is the reason for [`Verdict::Failed`].
pub trait Outcome {
    #[doc(hidden)]
    fn code(self) -> i32;
}

impl Outcome for Verdict {
    fn code(self) -> i32 {
        self as i32
    }
}

impl Outcome for core::result::Result<Verdict, Failure> {
    fn code(self) -> i32 {
        match self {
            Ok(v) => v as i32,
            Err(why) => {
                fail(why.0);
                Verdict::Failed as i32
            }
        }
    }
}

/// A filter with settings or state. [`filter!`](crate::filter!) makes one in each instance.
pub trait Filter: Sized {
    /// Called once, before the first message: the place to read the configuration. There is no message yet. An error refuses
    /// the module, with its text.
    fn start() -> core::result::Result<Self, Failure>;

    /// Called for each message. An error is [`Verdict::Failed`] with its text; a panic too, and it costs the instance.
    fn process(&mut self, m: &mut Message) -> core::result::Result<Verdict, Failure>;

    /// Called about once a second, and once more before [`Filter::close`]. There is no message; [`emit`](crate::emit) works.
    fn tick(&mut self) {}

    /// Called before the instance goes; not after a panic.
    fn close(&mut self) {}
}

/// Exports a filter: `weir::filter!(process)` for a function of `&mut Message` that returns an [`Outcome`], or
/// `weir::filter!(type T)` for a type that is a [`Filter`]. Once in a crate.
#[macro_export]
macro_rules! filter {
    (type $filter:ty) => {
        static WEIR_FILTER: $crate::Running<$filter> = $crate::Running::new();

        #[no_mangle]
        pub extern "C" fn weir_init() -> i32 {
            WEIR_FILTER.start()
        }

        #[no_mangle]
        pub extern "C" fn weir_process() -> i32 {
            WEIR_FILTER.process()
        }

        #[no_mangle]
        pub extern "C" fn weir_tick() {
            WEIR_FILTER.tick()
        }

        #[no_mangle]
        pub extern "C" fn weir_close() {
            WEIR_FILTER.close()
        }
    };
    ($process:expr) => {
        #[no_mangle]
        pub extern "C" fn weir_init() -> i32 {
            $crate::tell_panics();
            0
        }

        #[no_mangle]
        pub extern "C" fn weir_process() -> i32 {
            $crate::process_with($process)
        }
    };
}

#[doc(hidden)]
pub fn process_with<O: Outcome>(process: impl FnOnce(&mut Message) -> O) -> i32 {
    process(&mut Message::in_hand()).code()
}

/// The filter of this instance.
#[doc(hidden)]
pub struct Running<F>(UnsafeCell<Option<F>>);

// SAFETY: a guest is one thread, and the host calls nothing in it while it serves a call of the guest's.
unsafe impl<F> Sync for Running<F> {}

impl<F: Filter> Running<F> {
    pub const fn new() -> Running<F> {
        Running(UnsafeCell::new(None))
    }

    #[allow(clippy::mut_from_ref)]
    fn get(&self) -> &mut Option<F> {
        // SAFETY: as above: this is the only reference during a call.
        unsafe { &mut *self.0.get() }
    }

    pub fn start(&self) -> i32 {
        tell_panics();
        match F::start() {
            Ok(filter) => {
                *self.get() = Some(filter);
                0
            }
            Err(why) => {
                fail(why.0);
                1
            }
        }
    }

    pub fn process(&self) -> i32 {
        match self.get() {
            Some(filter) => filter.process(&mut Message::in_hand()).code(),
            None => Verdict::Failed as i32,
        }
    }

    pub fn tick(&self) {
        if let Some(filter) = self.get() {
            filter.tick()
        }
    }

    pub fn close(&self) {
        if let Some(mut filter) = self.get().take() {
            filter.close()
        }
    }
}

/// Logs a panic's text and place before it traps, and makes them the reason of the fault.
#[doc(hidden)]
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|what| {
        let text = what.to_string();
        write_log(Level::Error, &text);
        fail(&text);
    }));
}
