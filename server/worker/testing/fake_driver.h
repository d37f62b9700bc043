// A driver for tests, in memory: streams are queues of operations that the test runs one by one, or
// that run by themselves as soon as nothing before them waits. Device memory is host memory at the
// same addresses, so pointers of tests are real ones.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "server/worker/support/driver.h"

namespace longwire::worker::testing {

class FakeDriver {
 public:
  // The table's functions find the newest FakeDriver of the process.
  FakeDriver();
  ~FakeDriver();
  DriverTable table();

  // Streams as the worker made them, in order; 0 is the legacy stream. A stopped stream keeps what
  // is issued into it.
  void StopStream(size_t index);
  void RunStream(size_t index);
  // What was issued, in order: "launch s1 7" (stream, first parameter byte), "record s1",
  // "wait s2", "destroy s1", …
  std::vector<std::string> log();
  // Position of the first entry that is `text`, or -1.
  int IndexOf(const std::string& text);
  // Queries of streams and all later calls return this code.
  void Fault(CUresult code);
  // cuModuleLoadDataEx and cuFuncLoad wait until this is set to false.
  std::atomic<bool> hold_loads{false};
  std::atomic<bool> hold_function_loads{false};
  std::atomic<bool> hold_unloads{false};  // the same of cuModuleUnload
  std::atomic<bool> hold_imports{false};  // and of cuMemImportFromShareableHandle
  std::atomic<bool> hold_copies{false};   // copies are issued, but their calls do not return
  std::atomic<bool> maps_fail{false};     // cuMemMap: there is no memory
  // What launches a kernel, also one of a graph.
  decltype(DriverTable::cuLaunchKernel) launch_kernel;
  // Gets each launch's parameters and returns its result.
  std::function<CUresult(std::span<const std::byte>)> on_launch;
  std::atomic<int> launch_result{0};
  std::atomic<int> stream_result{0};  // of cuStreamCreateWithPriority
  std::atomic<int> function_loads{0};
  std::atomic<int> graphs_launched{0};  // of kernels; each of these is a launch of its own, too
  std::atomic<int> graphs_alive{0};     // executables
  std::atomic<int> instantiated{0};
  std::atomic<int> nodes_set{0};  // in executables
  std::atomic<int> instantiate_result{0}, set_result{0}, graph_launch_result{0};
  std::atomic<bool> moves_registered{false};  // for the device it lies at another address
  // Where operations of a batch have stored, in their order.
  std::vector<uint64_t> stores;
  std::atomic<int> not_elapsed{0};     // number of times that cuEventElapsedTime returns NOT_READY
  std::atomic<int> not_elapsed_ms{0};  // how long each of these takes

  // For the table.
  struct StreamState {
    size_t index = 0;
    bool stopped = false;
    std::deque<std::function<bool()>> operations;  // false: cannot run yet
  };
  static FakeDriver& Get();
  CUresult Issue(CUstream stream, const std::string& text, std::function<bool()> operation);
  CUresult Query(CUstream stream);
  CUresult Note(const std::string& text);
  StreamState& StateOf(CUstream stream);
  CUstream NewStream();

 private:
  void RunAll() LONGWIRE_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::vector<std::unique_ptr<StreamState>> streams_ LONGWIRE_GUARDED_BY(mutex_);
  std::vector<std::string> log_ LONGWIRE_GUARDED_BY(mutex_);
  std::atomic<int> fault_{0};
};

}  // namespace longwire::worker::testing
