#include "server/worker/process/snapshot.h"

#include <algorithm>
#include <utility>

#include "base/read_write.h"
#include "base/try.h"
#include "longwire/calls.h"
#include "server/worker/code/carried_variables.h"
#include "server/worker/process/early_reads.h"
#include "server/worker/process/later_writes.h"
#include "server/worker/process/session.h"
#include "server/worker/process/stream_files.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kMaxHead = uint64_t{16} << 20;

}  // namespace

bool SnapshotWriter::WriteBytes(std::span<const std::byte> bytes) {
  if (later_ == nullptr) return base::WriteAll(stream_, bytes);
  return later_->WriteFrom(bytes) && later_->Flush();
}

bool SnapshotWriter::WritePiece(std::span<const std::byte> bytes) {
  return later_ == nullptr ? base::WriteAll(stream_, bytes) : later_->WriteFrom(bytes);
}

// In one piece, for which the reader wakes once.
bool SnapshotWriter::WriteHead(const std::vector<std::byte>& packed, int file) {
  const uint64_t bytes = packed.size();
  const auto length = std::as_bytes(std::span(&bytes, 1));
  std::vector<std::byte> frame(length.begin(), length.end());
  frame.insert(frame.end(), packed.begin(), packed.end());
  if (file >= 0) {
    const ssize_t sent = SendWithFile(stream_, frame, file, 0);
    if (sent <= 0) return false;
    return base::WriteAll(stream_, std::span(frame).subspan(static_cast<size_t>(sent)));
  }
  return later_ == nullptr ? base::WriteAll(stream_, frame) : later_->Write(std::move(frame));
}

bool SnapshotReader::ReadBytes(std::span<std::byte> bytes) {
  while (!bytes.empty() && early_ != nullptr) {
    const std::span<const std::byte> next = early_->Next(1, bytes.size());
    if (next.empty()) return false;
    std::ranges::copy(next, bytes.begin());
    early_->Used(next.size());
    bytes = bytes.subspan(next.size());
  }
  return base::ReadAll(stream_, bytes);
}

bool SnapshotReader::ReadHead(std::vector<std::byte>* packed) {
  uint64_t bytes = 0;
  auto length = std::as_writable_bytes(std::span(&bytes, 1));
  if (early_ == nullptr) {
    file_.Reset();
    const ssize_t got = ReceiveWithFile(stream_, length, &file_, 0);
    if (got <= 0) return false;
    length = length.subspan(static_cast<size_t>(got));
  }
  if (!ReadBytes(length) || bytes > kMaxHead) return false;
  packed->resize(bytes);
  if (!ReadBytes(*packed)) return false;
  if (message::KindOf(*packed) != SnapshotEnd::kKind) ++frames_;
  return true;
}

CUresult PlaceOf(WorkerSession& session, uint64_t library, uint32_t context,
                 const std::string& name, CUdeviceptr* address, size_t* bytes) {
  auto found = session.libraries.Find(library);
  auto in = session.contexts.Find(context);
  if (found == nullptr || in == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  LONGWIRE_TRY(session.SetContext(*in));
  return found->library != nullptr
             ? session.driver().cuLibraryGetGlobal(address, bytes, found->library, name.c_str())
             : session.driver().cuModuleGetGlobal_v2(address, bytes, found->module, name.c_str());
}

namespace {

bool IsLoad(CallId call) { return call == CallId::lwModuleLoad; }

// Looked for once: before a session stands still, mostly.
std::string NamesIn(WorkerSession& session, const Journal::Entry& entry, Journal::Names* names) {
  *names = entry.variables;
  if (*names != nullptr) return "";
  auto found = std::make_shared<std::vector<std::string>>();
  std::string problem = NamesOfVariables(*entry.image, session.cubins_of(), found.get());
  if (!problem.empty()) return problem;
  *names = found;
  session.journal().KeepVariables(entry.call.position, found);
  return "";
}

}  // namespace

std::string LookForVariables(WorkerSession& session) {
  for (const Journal::Entry& entry : session.journal().EntriesOf(IsLoad)) {
    Journal::Names names;
    if (entry.image == nullptr || !entry.answered || entry.result != CUDA_SUCCESS) continue;
    std::string problem = NamesIn(session, entry, &names);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string FindVariables(WorkerSession& session, std::vector<Contents>* variables) {
  for (const Journal::Entry& entry : session.journal().EntriesOf(IsLoad)) {
    // One that is being loaded is looked at again once the session stands still.
    if (!entry.answered) continue;
    if (entry.result != CUDA_SUCCESS) continue;
    if (entry.image == nullptr) return "one of its modules is not known";
    calls::lwModuleLoad load;
    wire::Reader reader(entry.call.arguments);
    if (load.Decode(reader) != wire::WireResult::kOk) return "one of its modules is not understood";
    auto library = session.libraries.Find(load.library);
    if (library == nullptr) continue;  // unloaded
    Journal::Names names;
    std::string problem = NamesIn(session, entry, &names);
    if (!problem.empty()) return problem;
    std::vector<std::shared_ptr<Context>> contexts = {library->context};
    if (library->library != nullptr) contexts = session.contexts.All();
    for (const auto& context : contexts) {
      for (const std::string& name : *names) {
        Contents& one = variables->emplace_back();
        one.library = load.library;
        one.context = context->id;
        one.name = name;
        CUdeviceptr address = 0;
        size_t bytes = 0;
        CUresult result = PlaceOf(session, one.library, one.context, name, &address, &bytes);
        if (result != CUDA_SUCCESS) {
          return "the variable " + name + " of one of its modules cannot be found (error " +
                 std::to_string(result) + ")";
        }
        one.address = address;
        one.bytes = bytes;
      }
    }
  }
  return "";
}

}  // namespace longwire::worker
