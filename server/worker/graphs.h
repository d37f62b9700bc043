// Captures and graphs. Copies from and to host memory inside a graph use pinned memory that the
// graph owns: before each launch the client sends what the graph reads, after it gets what it
// wrote; around a host function in the middle, at that point. So launches of graphs that share such
// memory go one after the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>

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

  // Generated calls that put one graph's nodes into another: what they need goes along. Graphs may
  // be the client's or the worker's ids.
  void CopyParts(uint64_t from_graph, uint64_t to_graph);
  void CopyPartsToExec(uint64_t from_graph, uint64_t exec, bool replace);

  // A host function has run in the client. Outside graphs the waiting stream asks for it with
  // TakeDone (log thread).
  void HostFunctionDone(uint64_t ticket);
  bool TakeDone(uint64_t ticket);
  // Bytes of some graph's read came in.
  void BytesArrived();

  // For generated calls.
  HandleTable<Graph>& table() { return graphs_; }
  HandleTable<GraphExec>& exec_table() { return execs_; }

 private:
  static void CUDA_CB RunHostNode(void* node);
  void RunHostNode(GraphHostNode& node);
  CUresult PartOf(Stream& stream, std::shared_ptr<GraphPart>* part);
  CUgraphNode NewestNode(Stream& stream);
  CUresult Allocate(GraphPart& part, uint64_t bytes, std::byte** memory);
  bool Begin(const GraphParts& parts);
  void Finish(const GraphParts& parts, bool good);
  GraphParts PartsOf(uint64_t graph);

  Session& session_;
  HandleTable<Graph> graphs_;
  HandleTable<GraphExec> execs_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, GraphParts> captures_;       // by the driver's capture id; the own part first
  std::map<uint64_t, GraphParts> foreign_parts_;  // of graphs with a worker's id
  std::map<uint64_t, uint64_t> done_;             // ticket to times it ran
  std::atomic<int> nodes_waiting_{0};             // host nodes that wait for bytes
};

}  // namespace longwire::worker
