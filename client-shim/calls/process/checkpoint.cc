// Checkpoints of the program's own process: its session is suspended into a file of the server's.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "base/try.h"
#include "client-shim/connect/connection.h"
#include "client-shim/connect/options.h"
#include "client-shim/connect/suspension.h"
#include "client-shim/context/context.h"
#include "client-shim/context/properties.h"
#include "client-shim/entry/error_log.h"
#include "client-shim/session/checkpoint_lock.h"
#include "client-shim/stream/stream.h"
#include "client-shim/support/threads.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;
using wire::SuspensionWish;

constexpr std::chrono::milliseconds kWorkLook{1};  // between looks at unfinished work
// When it is not known what has become of a request, the server is asked this often.
constexpr int kStateQuestions = 20;
constexpr std::chrono::milliseconds kBetweenQuestions{1000};

CUresult RefuseCheckpoint(const char* call, const std::string& reason) {
  LogError(std::string(call) + " is not supported: " + reason);
  Say("%s: %s", call, reason.c_str());
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult CheckProcess(const char* call, int pid) {
  if (pid <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (pid == getpid()) return CUDA_SUCCESS;
  return RefuseCheckpoint(call,
                          "a program can lock, checkpoint and restore itself only; of another "
                          "process an administrator of the server can suspend the session "
                          "(longwire admin checkpoint)");
}

// Reserved for later: whoever sets it wants what is not there.
bool AllZero(const void* begin, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(begin);
  return std::all_of(at, at + bytes, [](unsigned char byte) { return byte == 0; });
}

CUresult BeginChange(const char* call, int pid, const CheckpointChange& change,
                     CUprocessState wanted) {
  LONGWIRE_TRY(CheckProcess(call, pid));
  if (ThisThread().runs_host_function) return CUDA_ERROR_NOT_PERMITTED;
  LONGWIRE_TRY(ClientSession::over());
  return change.is_alone() && CheckpointState() == wanted ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

bool PointIsFinished(const StreamPoint& point) {
  return PollStream(point.stream, point.position) != CUDA_ERROR_NOT_READY;
}

// All that was queued until now, in all contexts. False at the deadline.
bool AwaitAllWork(Clock::time_point deadline) {
  for (ClientSession* session : Sessions()) session->AppendDeferred();
  std::vector<StreamPoint> points = UnfinishedWorkOfAll();
  bool finished = true;
  for (const StreamPoint& point : points) {
    while (finished && !PointIsFinished(point)) {
      finished = Clock::now() < deadline && ClientSession::over() == CUDA_SUCCESS;
      if (finished) usleep(std::chrono::microseconds(kWorkLook).count());
    }
    Release(point.stream);
  }
  return finished;
}

// What has become of a request whose answer did not come.
wire::SuspensionReply FindOutState(const ClientSession& session) {
  wire::SuspensionReply reply;
  for (int i = 0; i < kStateQuestions && !reply.answered; ++i) {
    usleep(std::chrono::microseconds(kBetweenQuestions).count());
    reply = AskToSuspend(session, {.wish = SuspensionWish::kState});
  }
  return reply;
}

// To suspend, or to restore; the state afterwards is what the server says.
CUresult ChangeSession(const char* call, const wire::SuspensionRequest& request) {
  const ClientSession& session = TheSession();
  wire::SuspensionReply reply = AskToSuspend(session, request);
  const std::string sentence = reply.sentence;
  if (!reply.answered) reply = FindOutState(session);
  if (!reply.answered) {
    CheckpointChange::Set(CU_PROCESS_STATE_FAILED);
    LogError(std::string(call) + ": " + sentence);
    Say("%s: %s", call, sentence.c_str());
    return CUDA_ERROR_UNKNOWN;
  }
  const bool suspends = request.wish == SuspensionWish::kSuspend;
  CheckpointChange::Set(reply.suspended ? CU_PROCESS_STATE_CHECKPOINTED : CU_PROCESS_STATE_LOCKED);
  return reply.suspended == suspends ? CUDA_SUCCESS : RefuseCheckpoint(call, sentence);
}

// The device to go on on: the session has one, and the pairs have to have it, and it alone.
CUresult DeviceOfPairs(const CUcheckpointRestoreArgs& args, std::array<uint8_t, 16>* device) {
  if (!AllZero(args.reserved, sizeof(args.reserved)) || args.reserved1 != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (args.gpuPairsCount == 0) return CUDA_SUCCESS;
  uint8_t own[16] = {};
  const auto& devices = TheSession().opened().devices;
  if (args.gpuPairs == nullptr || args.gpuPairsCount != 1 || devices.size() != 1) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(own, devices.front().uuid.data(), sizeof(own));
  if (std::memcmp(args.gpuPairs->oldUuid.bytes, own, sizeof(own)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // The program goes on seeing the UUID of its first device, wherever it is.
  if (AllZero(args.gpuPairs->newUuid.bytes, sizeof(own))) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(device->data(), args.gpuPairs->newUuid.bytes, device->size());
  return CUDA_SUCCESS;
}

}  // namespace

namespace hand {

CUresult cuCheckpointProcessGetState(int pid, CUprocessState* state) {
  LONGWIRE_TRY(CheckProcess("cuCheckpointProcessGetState", pid));
  *state = CheckpointState();
  return CUDA_SUCCESS;
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) {
  const CheckpointChange change;
  LONGWIRE_TRY(BeginChange("cuCheckpointProcessLock", pid, change, CU_PROCESS_STATE_RUNNING));
  unsigned timeout = 0;
  if (args != nullptr) {
    timeout = args->timeoutMs;
    if (args->reserved0 != 0 || !AllZero(args->reserved1, sizeof(args->reserved1))) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const auto deadline =
      timeout == 0 ? Clock::time_point::max() : Clock::now() + std::chrono::milliseconds(timeout);
  CheckpointChange::HoldCalls(true);
  if (AwaitAllWork(deadline)) {
    CheckpointChange::Set(CU_PROCESS_STATE_LOCKED);
    return CUDA_SUCCESS;
  }
  CheckpointChange::HoldCalls(false);
  return ClientSession::over() == CUDA_SUCCESS ? CUDA_ERROR_NOT_READY : ClientSession::over();
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* args) {
  constexpr const char* kCall = "cuCheckpointProcessCheckpoint";
  const CheckpointChange change;
  LONGWIRE_TRY(BeginChange(kCall, pid, change, CU_PROCESS_STATE_LOCKED));
  if (args != nullptr && !AllZero(args, sizeof(*args))) return CUDA_ERROR_INVALID_VALUE;
  if (Sessions().size() != 1) {
    return RefuseCheckpoint(kCall,
                            "the program has devices of several servers, whose sessions cannot "
                            "be suspended");
  }
  if (IsLocal(ProcessOptions())) {
    return RefuseCheckpoint(kCall,
                            "a program at the server's local socket shares memory with its "
                            "worker and cannot be suspended; connect by the network instead");
  }
  return ChangeSession(kCall, {.wish = SuspensionWish::kSuspend});
}

CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* args) {
  constexpr const char* kCall = "cuCheckpointProcessRestore";
  const CheckpointChange change;
  LONGWIRE_TRY(BeginChange(kCall, pid, change, CU_PROCESS_STATE_CHECKPOINTED));
  wire::SuspensionRequest request{.wish = SuspensionWish::kRestore};
  if (args != nullptr) LONGWIRE_TRY(DeviceOfPairs(*args, &request.device));
  return ChangeSession(kCall, request);
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* args) {
  const CheckpointChange change;
  LONGWIRE_TRY(BeginChange("cuCheckpointProcessUnlock", pid, change, CU_PROCESS_STATE_LOCKED));
  if (args != nullptr && !AllZero(args, sizeof(*args))) return CUDA_ERROR_INVALID_VALUE;
  CheckpointChange::Set(CU_PROCESS_STATE_RUNNING);
  CheckpointChange::HoldCalls(false);
  return CUDA_SUCCESS;
}

}  // namespace hand
}  // namespace longwire::shim
