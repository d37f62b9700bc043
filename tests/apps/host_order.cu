// Random programs over memory of host and device, held against a model (host_order_model.h): copies
// both ways, kernels, fills, host functions and graphs in streams that wait for values, for
// spinning kernels, for host functions and for each other, while the host writes and reads what
// they touch.
//
//     host_order [SEED [PROGRAMS [BYTES [trace]]]]
//
// Program N of a run has the seed SEED + N and can be run alone.
//
// Natively some of these programs end otherwise. NVIDIA's driver (580, on an H200) reads the source
// of an upload of up to 24 KiB from pinned or registered memory when it is queued, if its stream
// waits for another one by the legacy stream's rule: what a host function before it writes there is
// not copied. From 32 KiB on, and within a stream, it reads in the stream's order, as Longwire
// always does.
#include <algorithm>
#include <cstdarg>

#include "host_order_program.h"

namespace {

void Program::Say(const char* format, ...) {
  if (!trace_) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::printf("%3d ", step_);
  std::vprintf(format, arguments);
  std::printf("\n");
  va_end(arguments);
  std::fflush(stdout);
}

// Sizes around those at which copies take another way, small ones more often.
size_t Program::Size() {
  const size_t sizes[] = {
      4, 64, 4096, 20'000, 65'536, 65'540, 300'000, 1 << 20, machine_.size - 100};
  size_t size = sizes[std::min({Below(9), Below(9), Below(9)})];
  return std::min(size + Below(3), machine_.size / 2 + (Below(4) == 0 ? machine_.size / 4 : 0));
}

Piece Program::Pick(int buffer, size_t width, size_t rows) {
  size_t pitch = rows == 1 ? width : width + Below(40);
  size_t span = (rows - 1) * pitch + width;
  // Few places, so that pieces overlap.
  size_t offset = Below(3) == 0 ? 0 : (machine_.size - span) / 8 * Below(8);
  return {buffer, offset, width, rows, pitch};
}

// Often where something was picked lately.
Piece Program::PickHost(bool pageable) {
  if (!pageable && !recent_.empty() && Below(2) == 0) {
    Piece piece = recent_[recent_.size() - 1 - Below(std::min<int>(recent_.size(), 4))];
    size_t most = (machine_.size - piece.offset - piece.width) / std::max<size_t>(piece.rows, 1);
    if (piece.rows == 1)
      piece.offset += std::min<size_t>(most, Below(4) == 0 ? piece.width / 2 : 0);
    return piece;
  }
  size_t size = Size(), rows = 1;
  if (Below(5) == 0 && size >= 64) {
    rows = 2 + Below(9);
    size = std::max<size_t>(size / rows / 2, 1);
  }
  Piece piece = Pick(pageable ? kPageable : Below(kPageable), size, rows);
  if (!pageable) recent_.push_back(piece);
  return piece;
}

void Program::CopyInModel(const Piece& to, const Piece& from) {
  for (size_t row = 0; row < to.rows; ++row) {
    std::memmove(&model_.memory(to.buffer)[to.offset + row * to.pitch],
                 &model_.memory(from.buffer)[from.offset + row * from.pitch], to.width);
  }
}

void Program::MixInModel(const Piece& piece, unsigned char value) {
  unsigned char* bytes = &model_.memory(piece.buffer)[piece.offset];
  for (size_t i = 0; i < piece.width; ++i) bytes[i] = bytes[i] * 5 + value;
}

std::vector<int> Program::Before(int stream) const {
  std::vector<int> before = last_[stream];
  for (int other = 2; other < kStreams; ++other) {
    if (stream >= 2 && (stream == kLegacy || other == kLegacy)) {
      before.insert(before.end(), last_[other].begin(), last_[other].end());
    }
  }
  return before;
}

// Notes the operation, unless its outcome would be left open. Then the caller leaves it.
bool Program::Queue(int stream, const model::Accesses& accesses, std::function<void()> act) {
  std::vector<int> before = Before(stream);
  if (!model_.MayQueue(before, accesses)) return false;
  last_[stream] = {model_.Queue(before, accesses, std::move(act))};
  return true;
}

bool Program::IsIdleOrRuns(int stream) const {
  std::vector<int> before = Before(stream);
  return std::all_of(before.begin(), before.end(), [&](int each) { return model_.Runs(each); });
}

bool Program::IsHeld(Hold hold) const {
  return std::any_of(held_.begin(), held_.end(),
                     [&](const Held& held) { return held.hold == hold; });
}

void Program::Upload(int stream) {
  Piece from = PickHost(false), to = PickDevice(from);
  auto act = [=] { CopyInModel(to, from); };
  if (!Queue(stream, {from.Touches(false), to.Touches(true)}, act)) return;
  Say("upload in %d: %zu x %zu from %d+%zu to %d+%zu", stream, from.width, from.rows, from.buffer,
      from.offset, to.buffer, to.offset);
  if (from.rows == 1) {
    CHECK(cudaMemcpyAsync(At(to), At(from), from.width, cudaMemcpyHostToDevice,
                          machine_.streams[stream]));
  } else {
    CHECK(cudaMemcpy2DAsync(At(to), to.pitch, At(from), from.pitch, from.width, from.rows,
                            cudaMemcpyHostToDevice, machine_.streams[stream]));
  }
}

// Its bytes are taken before the call returns.
void Program::UploadPageable(int stream) {
  Piece from = PickHost(true);
  from.rows = 1;
  from.width = std::min<size_t>(from.width, 16'384);
  Piece to = PickDevice(from);
  auto first = model_.memory(kPageable).begin() + from.offset;
  std::vector<unsigned char> taken(first, first + from.width);
  auto act = [=] {
    std::copy(taken.begin(), taken.end(), model_.memory(to.buffer).begin() + to.offset);
  };
  if (!Queue(stream, {to.Touches(true)}, act)) return;
  Say("pageable upload in %d: %zu from %zu to %d+%zu", stream, from.width, from.offset, to.buffer,
      to.offset);
  CHECK(cudaMemcpyAsync(At(to), At(from), from.width, cudaMemcpyHostToDevice,
                        machine_.streams[stream]));
}

void Program::UploadBatch(int stream) {
  if (stream == kLegacy) return;
  constexpr size_t kCopies = 3;
  void* to[kCopies];
  const void* from[kCopies];
  size_t sizes[kCopies], zero = 0, count = 0;
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  for (size_t i = 0; i < kCopies; ++i) {
    Piece source = PickHost(false);
    source.rows = 1;
    source.width = std::min<size_t>(source.width, 70'000);
    Piece target = PickDevice(source);
    // Copies of a batch are in no order.
    auto act = [=] { CopyInModel(target, source); };
    std::vector<int> last = last_[stream];
    bool apart = count == 0 || model_.MayQueue({}, {source.Touches(false), target.Touches(true)});
    if (!apart || !Queue(stream, {source.Touches(false), target.Touches(true)}, act)) continue;
    Say("of a batch in %d: %zu from %d+%zu to %d+%zu", stream, source.width, source.buffer,
        source.offset, target.buffer, target.offset);
    to[count] = At(target);
    from[count] = At(source);
    sizes[count++] = source.width;
  }
  if (count == 0) return;
  CHECK(cudaMemcpyBatchAsync(to, from, sizes, count, &attributes, &zero, 1,
                             machine_.streams[stream]));
}

void Program::UploadAndWait() {
  Piece from = PickHost(Below(2) == 0);
  from.rows = 1;
  Piece to = PickDevice(from);
  if (!IsIdleOrRuns(kLegacy) || !model_.HostMay(from.Touches(false))) return;
  auto act = [=] { CopyInModel(to, from); };
  if (!Queue(kLegacy, {from.Touches(false), to.Touches(true)}, act)) return;
  Say("waiting upload of %zu from %d+%zu to %d+%zu", from.width, from.buffer, from.offset,
      to.buffer, to.offset);
  CHECK(cudaMemcpy(At(to), At(from), from.width, cudaMemcpyHostToDevice));
}

void Program::Download(int stream) {
  Piece to = PickHost(false), from = PickDevice(to);
  auto act = [=] { CopyInModel(to, from); };
  if (!Queue(stream, {from.Touches(false), to.Touches(true)}, act)) return;
  Say("download in %d: %zu x %zu from %d+%zu to %d+%zu", stream, from.width, from.rows, from.buffer,
      from.offset, to.buffer, to.offset);
  if (from.rows == 1) {
    CHECK(cudaMemcpyAsync(At(to), At(from), from.width, cudaMemcpyDeviceToHost,
                          machine_.streams[stream]));
  } else {
    CHECK(cudaMemcpy2DAsync(At(to), to.pitch, At(from), from.pitch, from.width, from.rows,
                            cudaMemcpyDeviceToHost, machine_.streams[stream]));
  }
}

void Program::Kernel(int stream) {
  Piece on = Pick(kHosts + Below(kDevices), std::min<size_t>(Size(), 8192), 1);
  auto value = static_cast<unsigned char>(Below(256));
  if (!Queue(stream, {on.Touches(true)}, [=] { MixInModel(on, value); })) return;
  Say("kernel in %d: %zu at %d+%zu", stream, on.width, on.buffer, on.offset);
  auto count = static_cast<unsigned>(on.width);
  Mix<<<(count + 255) / 256, 256, 0, machine_.streams[stream]>>>(At(on), count, value);
  CHECK(cudaGetLastError());
}

void Program::Set(int stream) {
  Piece on = Pick(kHosts + Below(kDevices), Size(), 1);
  auto value = static_cast<unsigned char>(Below(256));
  auto act = [=] { std::memset(&model_.memory(on.buffer)[on.offset], value, on.width); };
  if (!Queue(stream, {on.Touches(true)}, act)) return;
  Say("fill in %d: %zu at %d+%zu", stream, on.width, on.buffer, on.offset);
  CHECK(cudaMemsetAsync(At(on), value, on.width, machine_.streams[stream]));
}

void Program::Between(int stream) {
  Piece from = Pick(kHosts, Size(), 1), to = Pick(kHosts + 1 + Below(kDevices - 1), from.width, 1);
  auto act = [=] { CopyInModel(to, from); };
  if (!Queue(stream, {from.Touches(false), to.Touches(true)}, act)) return;
  Say("copy in %d: %zu from %d+%zu to %d+%zu", stream, from.width, from.buffer, from.offset,
      to.buffer, to.offset);
  CHECK(cudaMemcpyAsync(At(to), At(from), from.width, cudaMemcpyDeviceToDevice,
                        machine_.streams[stream]));
}

void Program::HostFunction(int stream) {
  // They may run one after the other, whatever their streams.
  if (IsHeld(Hold::kHostFunction)) return;
  Piece on = PickHost(false);
  auto value = static_cast<unsigned char>(Below(256));
  auto act = [=] { FillPiece(model_.memory(on.buffer).data(), on, value); };
  if (!Queue(stream, {on.Touches(true)}, act)) return;
  Say("host function in %d: %zu x %zu at %d+%zu", stream, on.width, on.rows, on.buffer, on.offset);
  auto* fill = new Fill{machine_.memory[on.buffer], on, value};
  host_functions_.push_back(last_[stream][0]);
  CHECK(cudaLaunchHostFunc(machine_.streams[stream], FillOnHost, fill));
}

void Program::WaitFor(int stream, int other) {
  if (stream == other || last_[other].empty()) return;
  Say("%d waits for %d", stream, other);
  // The record is work of its stream as any other.
  last_[other] = {model_.Queue(Before(other), {}, [] {})};
  const std::vector<int> before = last_[other];
  CHECK(cudaEventRecord(machine_.event, machine_.streams[other]));
  CHECK(cudaStreamWaitEvent(machine_.streams[stream], machine_.event));
  last_[stream].insert(last_[stream].end(), before.begin(), before.end());
}

// Up, a kernel there, and down to another place.
void Program::MakeGraphs() {
  for (int i = 0; i < 2; ++i) {
    Graph made;
    made.from = Pick(Below(kPageable), std::min<size_t>(Size(), 8192), 1);
    made.on = Pick(kHosts + Below(kDevices), made.from.width, 1);
    made.to = Pick(Below(kPageable), made.from.width, 1);
    made.value = static_cast<unsigned char>(Below(256));
    if (made.from.Touches(true).Conflicts(made.to.Touches(true))) continue;
    cudaGraph_t graph;
    cudaStream_t stream = machine_.streams[0];
    auto count = static_cast<unsigned>(made.on.width);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK(cudaMemcpyAsync(At(made.on), At(made.from), count, cudaMemcpyHostToDevice, stream));
    Mix<<<(count + 255) / 256, 256, 0, stream>>>(At(made.on), count, made.value);
    CHECK(cudaMemcpyAsync(At(made.to), At(made.on), count, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&made.exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    graphs_.push_back(made);
  }
}

void Program::LaunchGraph(int stream) {
  if (graphs_.empty()) return;
  Graph& graph = graphs_[Below(static_cast<int>(graphs_.size()))];
  model::Accesses accesses = {graph.from.Touches(false), graph.on.Touches(true),
                              graph.to.Touches(true)};
  auto act = [this, from = graph.from, on = graph.on, to = graph.to, value = graph.value] {
    CopyInModel(on, from);
    MixInModel(on, value);
    CopyInModel(to, on);
  };
  if (!Queue(stream, accesses, act)) return;
  Say("graph in %d: %zu from %d+%zu by %d+%zu to %d+%zu", stream, graph.on.width, graph.from.buffer,
      graph.from.offset, graph.on.buffer, graph.on.offset, graph.to.buffer, graph.to.offset);
  CHECK(cudaGraphLaunch(graph.exec, machine_.streams[stream]));
}

// Holds the stream up until the program lets it go.
void Program::Take(int stream) {
  auto hold = static_cast<Hold>(Below(4));
  if (held_.size() == 3 || flags_used_ == kFlags) return;
  // It may hold up all functions that have not run.
  if (hold == Hold::kHostFunction && (IsHeld(hold) || !model_.AllFinished(host_functions_))) return;
  unsigned flag = flags_used_++;
  Say("hold %d of %d by %d", static_cast<int>(hold), stream, flag);
  last_[stream] = {model_.Queue(
      Before(stream), {}, [] {}, true)};
  held_.push_back({last_[stream][0], stream, hold, flag});
  // One that is let go before it has begun may still wait for the next one that holds its stream.
  if (hold == Hold::kHostFunction) host_functions_.push_back(last_[stream][0]);
  cudaStream_t handle = machine_.streams[stream];
  auto address = reinterpret_cast<CUdeviceptr>(machine_.flags + flag);
  if (hold == Hold::kKernel) {
    SpinUntil<<<1, 1, 0, handle>>>(machine_.flags + flag);
    CHECK(cudaGetLastError());
  } else if (hold == Hold::kHostFunction) {
    CHECK(cudaLaunchHostFunc(handle, WaitOnHost, &let_go_[flag]));
  } else {
    if (hold == Hold::kHostValue) {
      address = reinterpret_cast<CUdeviceptr>(machine_.host_flags + flag);
    }
    CHECK(static_cast<cudaError_t>(
        machine_.values.wait(handle, address, 1, CU_STREAM_WAIT_VALUE_EQ)));
  }
}

void Program::LetGo(size_t which) {
  Held held = held_[which];
  held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  Say("let go %d", held.flag);
  model_.Release(held.operation);
  unsigned* flag = machine_.flags + held.flag;
  static const unsigned one = 1;
  if (held.hold == Hold::kHostFunction) {
    let_go_[held.flag].store(1);
  } else if (held.hold == Hold::kHostValue) {
    reinterpret_cast<std::atomic<unsigned>*>(machine_.host_flags + held.flag)->store(1);
  } else if (Below(2) == 0) {
    CHECK(cudaMemcpyAsync(flag, &one, sizeof one, cudaMemcpyHostToDevice, machine_.control));
  } else {
    CHECK(static_cast<cudaError_t>(machine_.values.write(
        machine_.control, reinterpret_cast<CUdeviceptr>(flag), 1, CU_STREAM_WRITE_VALUE_DEFAULT)));
  }
}

void Program::Synchronize(int stream) {
  if (!IsIdleOrRuns(stream)) return;
  Say("wait for %d", stream);
  CHECK(cudaStreamSynchronize(machine_.streams[stream]));
  // Not what its next work would come behind: none of it need have been waited for.
  for (int each : last_[stream]) model_.Finish(each);
}

void Program::Write() {
  Piece on = PickHost(Below(4) == 0);
  if (!model_.HostMay(on.Touches(true))) return;
  auto value = static_cast<unsigned char>(Below(256));
  Say("write %zu x %zu at %d+%zu", on.width, on.rows, on.buffer, on.offset);
  FillPiece(machine_.memory[on.buffer], on, value);
  FillPiece(model_.memory(on.buffer).data(), on, value);
}

void Program::Check() {
  Piece on = PickHost(false);
  if (!model_.HostMay(on.Touches(false))) return;
  Compare(on, machine_.memory[on.buffer], "the host's memory");
}

void Program::Compare(const Piece& piece, const unsigned char* bytes, const char* what) {
  const unsigned char* wanted = model_.memory(piece.buffer).data();
  for (size_t row = 0; row < piece.rows; ++row) {
    size_t start = piece.offset + row * piece.pitch;
    if (std::memcmp(bytes + start, wanted + start, piece.width) == 0) continue;
    size_t at = start;
    while (bytes[at] == wanted[at]) ++at;
    EXPECT(false, "program %u, step %d: %s, buffer %d, byte %zu is %d, not %d", seed_, step_, what,
           piece.buffer, at, bytes[at], wanted[at]);
  }
}

void Program::Step() {
  // Much happens in streams that are held.
  int stream = AnyHeld() && Below(2) == 0 ? held_.back().stream : Below(kStreams);
  switch (Below(28)) {
    case 0:
    case 1:
    case 2:
      return Take(stream);
    case 3:
    case 4:
      if (AnyHeld()) LetGo(static_cast<size_t>(Below(static_cast<int>(held_.size()))));
      return;
    case 5:
      return Synchronize(stream);
    case 6:
    case 7:
      return WaitFor(stream, Below(kStreams));
    case 8:
      return Kernel(stream);
    case 9:
      return Set(stream);
    case 10:
      return Between(stream);
    case 11:
      return HostFunction(stream);
    case 12:
      return LaunchGraph(stream);
    case 13:
      return UploadPageable(stream);
    case 14:
      return UploadBatch(stream);
    case 15:
      return UploadAndWait();
    case 16:
    case 17:
      return Download(stream);
    case 18:
      return Check();
    case 19:
    case 20:
    case 21:
      return Write();
    default:
      return Upload(stream);
  }
}

void Program::End() {
  while (AnyHeld()) LetGo(static_cast<size_t>(Below(static_cast<int>(held_.size()))));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kHosts; ++i) {
    Compare({i, 0, machine_.size, 1, 0}, machine_.memory[i], "the host's memory at the end");
  }
  std::vector<unsigned char> bytes(machine_.size);
  for (int i = kHosts; i < kHosts + kDevices; ++i) {
    CHECK(cudaMemcpy(bytes.data(), machine_.memory[i], machine_.size, cudaMemcpyDeviceToHost));
    Compare({i, 0, machine_.size, 1, 0}, bytes.data(), "the device's memory at the end");
  }
  for (Graph& graph : graphs_) CHECK(cudaGraphExecDestroy(graph.exec));
}

void Program::Run() {
  for (int i = 0; i < kHosts; ++i) {
    std::memset(machine_.memory[i], 16 * i + 1, machine_.size);
    std::memset(model_.memory(i).data(), 16 * i + 1, machine_.size);
  }
  for (int i = kHosts; i < kHosts + kDevices; ++i) {
    CHECK(cudaMemset(machine_.memory[i], 0, machine_.size));
  }
  CHECK(cudaMemset(machine_.flags, 0, kFlags * sizeof(unsigned)));
  std::memset(machine_.host_flags, 0, kFlags * sizeof(unsigned));
  CHECK(cudaDeviceSynchronize());
  MakeGraphs();
  for (step_ = 0; step_ < kSteps; ++step_) Step();
  End();
}

}  // namespace

int main(int argc, char** argv) {
  auto number = [&](int index, unsigned otherwise) {
    return argc > index ? static_cast<unsigned>(std::atoi(argv[index])) : otherwise;
  };
  const unsigned seed = number(1, 1), programs = number(2, 60);
  Machine machine(number(3, 400'000));
  for (unsigned i = 0; i < programs; ++i) Program(machine, seed + i, argc > 4).Run();
  return Pass("host_order");
}
