// Captures and graphs. Copies from and to host memory inside a graph use pinned memory that the
// graph owns: before each launch the client sends what the graph reads, after it gets what the graph
// wrote. So launches of graphs that share such memory go one after the other.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "server/worker/copies.h"
#include "server/worker/handle_table.h"
#include "server/worker/objects.h"

namespace longwire::worker {

class Session;

class Graphs {
 public:
  explicit Graphs(Session& session) : session_(session) {}

  // Capture; the stream's issue_mutex is held and its context current.
  CUresult BeginCapture(Stream& stream);
  CUresult EndCapture(Stream& stream, uint64_t graph, uint64_t* nodes);
  // Copies and host functions of a capturing stream. `constant`: the bytes stay as they are now.
  CUresult CaptureUpload(Stream& stream, const CopyPlace& place, uint64_t transfer,
                         std::span<const std::byte> constant);
  CUresult CaptureDownload(Stream& stream, const CopyPlace& place, uint64_t transfer);
  CUresult CaptureHostFunction(Stream& stream, uint64_t ticket);

  CUresult Instantiate(uint64_t graph, uint64_t exec, uint64_t flags);
  // kNotYet while an earlier launch is not over or bytes are missing.
  CUresult Launch(const std::shared_ptr<Stream>& stream, QueuedCall& call, uint64_t exec);
  CUresult Destroy(uint64_t graph);
  CUresult DestroyExec(uint64_t exec);

  // A host function has run in the client. Outside graphs the waiting stream asks for it with
  // TakeDone (log thread).
  void HostFunctionDone(uint64_t ticket);
  bool TakeDone(uint64_t ticket);

  // For generated calls.
  HandleTable<Graph>& table() { return graphs_; }
  HandleTable<GraphExec>& exec_table() { return execs_; }

 private:
  struct HostNode {
    Graphs* graphs = nullptr;
    uint64_t ticket = 0;
  };
  static void CUDA_CB RunHostNode(void* node);
  CUresult StagingOf(Stream& stream, std::shared_ptr<GraphStaging>* staging);
  CUresult Allocate(GraphStaging& staging, uint64_t bytes, std::byte** memory);
  void SendWrites(const std::shared_ptr<GraphStaging>& staging, bool good);

  Session& session_;
  HandleTable<Graph> graphs_;
  HandleTable<GraphExec> execs_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::shared_ptr<GraphStaging>> captures_;  // by the driver's capture id
  std::map<uint64_t, std::unique_ptr<HostNode>> host_nodes_;    // by ticket
  std::map<uint64_t, uint64_t> done_;                           // ticket to times it ran
};

}  // namespace longwire::worker
