// Clang's thread-safety annotations, which `-Wthread-safety` checks; other compilers see nothing.
// The names are those of Abseil's macros with a prefix of our own, so that both may be included.
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html describes each.
#pragma once

#if defined(__clang__)
#define LONGWIRE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LONGWIRE_THREAD_ANNOTATION(x)
#endif

// On members: read and written only with the mutex held; the second: what the pointer points to.
#define LONGWIRE_GUARDED_BY(x) LONGWIRE_THREAD_ANNOTATION(guarded_by(x))
#define LONGWIRE_PT_GUARDED_BY(x) LONGWIRE_THREAD_ANNOTATION(pt_guarded_by(x))

// On mutexes without a rank (mutex.h): the order of two mutexes of one object.
#define LONGWIRE_ACQUIRED_AFTER(...) LONGWIRE_THREAD_ANNOTATION(acquired_after(__VA_ARGS__))
#define LONGWIRE_ACQUIRED_BEFORE(...) LONGWIRE_THREAD_ANNOTATION(acquired_before(__VA_ARGS__))

// On functions: the caller holds the mutex; the caller does not hold it.
#define LONGWIRE_REQUIRES(...) LONGWIRE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define LONGWIRE_EXCLUDES(...) LONGWIRE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

// On functions that take or release the mutex and return in that state.
#define LONGWIRE_ACQUIRE(...) LONGWIRE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define LONGWIRE_RELEASE(...) LONGWIRE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define LONGWIRE_TRY_ACQUIRE(...) LONGWIRE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define LONGWIRE_ASSERT_CAPABILITY(x) LONGWIRE_THREAD_ANNOTATION(assert_capability(x))
#define LONGWIRE_RETURN_CAPABILITY(x) LONGWIRE_THREAD_ANNOTATION(lock_returned(x))

// On classes: a mutex; an object that holds one while it lives.
#define LONGWIRE_CAPABILITY(x) LONGWIRE_THREAD_ANNOTATION(capability(x))
#define LONGWIRE_SCOPED_CAPABILITY LONGWIRE_THREAD_ANNOTATION(scoped_lockable)

// On functions whose use of locks the analysis cannot follow; a comment says why.
#define LONGWIRE_NO_THREAD_SAFETY_ANALYSIS LONGWIRE_THREAD_ANNOTATION(no_thread_safety_analysis)
