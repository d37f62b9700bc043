// One random program of host_order: what it may do, and what it remembers.
#pragma once

#include <random>
#include <vector>

#include "host_order_machine.h"

namespace {

class Program {
 public:
  Program(Machine& machine, unsigned seed, bool trace)
      : machine_(machine),
        seed_(seed),
        trace_(trace),
        random_(seed),
        model_(std::vector<size_t>(kHosts + kDevices, machine.size)) {}

  void Run();

 private:
  enum class Hold { kDeviceValue, kHostValue, kKernel, kHostFunction };
  struct Held {
    int operation, stream;
    Hold hold;
    unsigned flag;
  };
  struct Graph {
    cudaGraphExec_t exec;
    Piece from, on, to;
    unsigned char value;
  };

  int Below(int end) { return static_cast<int>(random_() % end); }
  void Say(const char* format, ...) __attribute__((format(printf, 2, 3)));
  size_t Size();
  Piece Pick(int buffer, size_t width, size_t rows);
  Piece PickHost(bool pageable);
  Piece PickDevice(const Piece& like) {
    return Pick(kHosts + Below(kDevices), like.width, like.rows);
  }
  unsigned char* At(const Piece& piece) const {
    return machine_.memory[piece.buffer] + piece.offset;
  }
  void CopyInModel(const Piece& to, const Piece& from);
  void MixInModel(const Piece& piece, unsigned char value);
  std::vector<int> Before(int stream) const;
  bool Queue(int stream, const model::Accesses& accesses, std::function<void()> act);
  bool IsIdleOrRuns(int stream) const;
  bool IsHeld(Hold hold) const;
  bool AnyHeld() const { return !held_.empty(); }

  void Step();
  void Upload(int stream);
  void UploadPageable(int stream);
  void UploadBatch(int stream);
  void UploadAndWait();
  void Download(int stream);
  void Kernel(int stream);
  void Set(int stream);
  void Between(int stream);
  void HostFunction(int stream);
  void WaitFor(int stream, int other);
  void MakeGraphs();
  void LaunchGraph(int stream);
  void Take(int stream);
  void LetGo(size_t which);
  void Synchronize(int stream);
  void Write();
  void Check();
  void Compare(const Piece& piece, const unsigned char* bytes, const char* what);
  void End();

  Machine& machine_;
  unsigned seed_;
  bool trace_;
  std::mt19937 random_;
  model::Model model_;
  std::vector<Piece> recent_;        // of the host
  std::vector<int> last_[kStreams];  // operations behind which the next one comes
  std::vector<int> host_functions_;
  std::vector<Held> held_;
  std::vector<Graph> graphs_;
  std::atomic<unsigned> let_go_[kFlags] = {};  // host functions
  unsigned flags_used_ = 0;
  int step_ = 0;
};

}  // namespace
