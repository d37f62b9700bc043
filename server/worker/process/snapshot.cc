#include "server/worker/process/snapshot.h"

#include <unistd.h>

#include <cerrno>

#include "base/try.h"
#include "longwire/calls.h"
#include "server/worker/code/carried_variables.h"
#include "server/worker/process/session.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kMaxHead = uint64_t{16} << 20;

}  // namespace

bool SnapshotWriter::WriteBytes(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(stream_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

// In one piece, for which the reader wakes once.
bool SnapshotWriter::WriteHead(const std::vector<std::byte>& packed) {
  const uint64_t bytes = packed.size();
  const auto length = std::as_bytes(std::span(&bytes, 1));
  std::vector<std::byte> frame(length.begin(), length.end());
  frame.insert(frame.end(), packed.begin(), packed.end());
  return WriteBytes(frame);
}

bool SnapshotReader::ReadBytes(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t got = read(stream_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

bool SnapshotReader::ReadHead(std::vector<std::byte>* packed) {
  uint64_t bytes = 0;
  if (!ReadBytes(std::as_writable_bytes(std::span(&bytes, 1))) || bytes > kMaxHead) return false;
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
