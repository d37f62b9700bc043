#include "client-shim/support/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>

namespace longwire::shim {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

thread_local ThreadState* this_thread = nullptr;
std::atomic<uint32_t> thread_count{0};
std::atomic<int> own_threads{0};
std::atomic<pid_t> own_process{0};  // a child has none of them
std::atomic<void (*)(ThreadState&)> thread_end_hook{nullptr};
pthread_key_t thread_end_key;
pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

void EndThread(void* argument) {
  auto* state = static_cast<ThreadState*>(argument);
  auto hook = thread_end_hook.load();
  if (hook != nullptr) hook(*state);
  this_thread = nullptr;
  delete state;
}

void CreateKey() { pthread_key_create(&thread_end_key, EndThread); }

struct Start {
  const char* name;
  void (*body)(void*);
  void* argument;
};

void* RunThread(void* argument) {
  std::unique_ptr<Start> start(static_cast<Start*>(argument));
  pthread_setname_np(pthread_self(), start->name);
  cpu_set_t allowed;
  // The main thread's set stands for the process's.
  if (sched_getaffinity(getpid(), sizeof(allowed), &allowed) == 0) {
    sched_setaffinity(0, sizeof(allowed), &allowed);
  }
  start->body(start->argument);
  own_threads.fetch_sub(1);
  return nullptr;
}

}  // namespace

ThreadState& ThisThread() {
  if (this_thread == nullptr) {
    pthread_once(&thread_end_once, CreateKey);
    this_thread = new ThreadState;
    this_thread->number = ++thread_count;
    pthread_setspecific(thread_end_key, this_thread);
  }
  return *this_thread;
}

void SetThreadEndHook(void (*hook)(ThreadState&)) { thread_end_hook.store(hook); }

bool StartThread(const char* name, void (*body)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto start = std::make_unique<Start>(Start{name, body, argument});
  pthread_t thread;
  if (own_process.exchange(getpid()) != getpid()) own_threads.store(0);
  own_threads.fetch_add(1);
  const int error = pthread_create(&thread, &attributes, RunThread, start.get());
  bool started = error == 0;
  if (started) static_cast<void>(start.release());  // RunThread has it
  if (!started) own_threads.fetch_sub(1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (!started) errno = error;
  return started;
}

int OwnThreads() { return own_process.load() == getpid() ? own_threads.load() : 0; }

}  // namespace longwire::shim
