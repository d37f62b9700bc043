// Locks, checkpoints, restores and unlocks itself as lines on standard input say: each is answered
// by the call's code and the state of the process behind it. The device's memory is what a model on
// the host says after each count. With arguments these are the lines, and each has to succeed.
//
//   lock [MILLISECONDS]  checkpoint  restore [OLD-UUID NEW-UUID]  unlock  state  pid NUMBER
//   reserved             arguments whose reserved parts are not zero
//   hold, let            a host function that ends when it is let
//   count                a thread adds to the memory and compares: it waits while there is a lock
//   counted              whether it has ended; join: waits for that
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "driver_add.h"
#include "driver_program.h"

constexpr unsigned kCount = 2 << 20;

struct Device {
  CUcontext context = nullptr;
  CUfunction add = nullptr;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  std::vector<unsigned> model;

  void Open() {
    CUdevice device = 0;
    CUmodule module = nullptr;
    CHECK_DRIVER(cuInit(0));
    CHECK_DRIVER(cuDeviceGet(&device, 0));
    CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
    CHECK_DRIVER(cuCtxSetCurrent(context));
    CHECK_DRIVER(cuModuleLoadData(&module, kAdd));
    CHECK_DRIVER(cuModuleGetFunction(&add, module, "Add"));
    CHECK_DRIVER(cuMemAlloc(&memory, kCount * sizeof(unsigned)));
    CHECK_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    model.resize(kCount);
    for (unsigned i = 0; i < kCount; ++i) model[i] = i * 2654435761u;
    CHECK_DRIVER(cuMemcpyHtoD(memory, model.data(), kCount * sizeof(unsigned)));
    CHECK_DRIVER(cuCtxSynchronize());
  }

  void Count() {
    unsigned count = kCount;
    void* parameters[] = {&memory, &count};
    std::vector<unsigned> found(kCount);
    CHECK_DRIVER(cuCtxSetCurrent(context));
    CHECK_DRIVER(
        cuLaunchKernel(add, kCount / 256, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr));
    CHECK_DRIVER(cuMemcpyDtoHAsync(found.data(), memory, kCount * sizeof(unsigned), stream));
    CHECK_DRIVER(cuStreamSynchronize(stream));
    for (unsigned i = 0; i < kCount; ++i) {
      model[i] += 5;
      EXPECT(found[i] == model[i], "element %u is %u, not %u", i, found[i], model[i]);
    }
  }
};

static CUuuid UuidOf(const std::string& text) {
  CUuuid uuid{};
  int digits = 0;
  for (char letter : text.substr(4)) {  // behind "GPU-"
    if (letter == '-') continue;
    const unsigned value = static_cast<unsigned>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
    auto& byte = reinterpret_cast<unsigned char*>(uuid.bytes)[digits++ / 2];
    byte = static_cast<unsigned char>(byte << 4 | value);
  }
  EXPECT(digits == 32, "%s is no UUID", text.c_str());
  return uuid;
}

static CUresult Restore(std::istringstream& words) {
  std::string before, after;
  if (!(words >> before >> after)) return cuCheckpointProcessRestore(getpid(), nullptr);
  CUcheckpointGpuPair pair{UuidOf(before), UuidOf(after)};
  CUcheckpointRestoreArgs args{};
  args.gpuPairs = &pair;
  args.gpuPairsCount = 1;
  return cuCheckpointProcessRestore(getpid(), &args);
}

static CUresult Lock(std::istringstream& words) {
  CUcheckpointLockArgs args{};
  if (!(words >> args.timeoutMs)) return cuCheckpointProcessLock(getpid(), nullptr);
  return cuCheckpointProcessLock(getpid(), &args);
}

// The first of these that is not refused as it should be.
static CUresult Reserved() {
  CUcheckpointLockArgs lock{};
  lock.reserved1[6] = 1;
  CUcheckpointRestoreArgs restore{};
  restore.reserved1 = 1;
  CUcheckpointUnlockArgs unlock{};
  unlock.reserved[7] = 1;
  CUprocessState state{};
  EXPECT(cuCheckpointProcessGetState(getpid(), &state) == CUDA_SUCCESS, "no state");
  if (state == CU_PROCESS_STATE_RUNNING) return cuCheckpointProcessLock(getpid(), &lock);
  if (state == CU_PROCESS_STATE_LOCKED) return cuCheckpointProcessUnlock(getpid(), &unlock);
  return cuCheckpointProcessRestore(getpid(), &restore);
}

static CUresult OfAnother(std::istringstream& words) {
  int pid = 0, thread = 0;
  words >> pid;
  CUprocessState state{};
  const CUresult result = cuCheckpointProcessLock(pid, nullptr);
  EXPECT(cuCheckpointProcessGetState(pid, &state) == result, "another code for the state");
  EXPECT(cuCheckpointProcessUnlock(pid, nullptr) == result, "another code for unlocking");
  EXPECT(cuCheckpointProcessGetRestoreThreadId(getpid(), &thread) == CUDA_ERROR_NOT_SUPPORTED,
         "a thread restores");
  return result;
}

int main(int argc, char** argv) {
  Device device;
  device.Open();
  std::atomic<bool> held{false}, counted{false};
  std::thread counting;
  std::cout << "READY" << std::endl;
  int next = 1;
  auto read = [&](std::string* line) {
    if (argc == 1) return static_cast<bool>(std::getline(std::cin, *line));
    *line = next < argc ? argv[next] : "";
    return next++ < argc;
  };
  for (std::string line; read(&line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    CUresult result = CUDA_SUCCESS;
    if (word == "lock") result = Lock(words);
    if (word == "checkpoint") result = cuCheckpointProcessCheckpoint(getpid(), nullptr);
    if (word == "restore") result = Restore(words);
    if (word == "unlock") result = cuCheckpointProcessUnlock(getpid(), nullptr);
    if (word == "reserved") result = Reserved();
    if (word == "pid") result = OfAnother(words);
    if (word == "hold") {
      held = true;
      result = cuLaunchHostFunc(
          device.stream,
          [](void* told) {
            while (*static_cast<std::atomic<bool>*>(told)) usleep(1000);
          },
          &held);
    }
    if (word == "let") held = false;
    if (word == "count") {
      counted = false;
      counting = std::thread([&] {
        device.Count();
        counted = true;
      });
    }
    if (word == "counted") result = counted ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    if (word == "join") counting.join();
    EXPECT(argc == 1 || result == CUDA_SUCCESS, "%s gave %d", line.c_str(), result);
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    EXPECT(cuCheckpointProcessGetState(getpid(), &state) == CUDA_SUCCESS, "no state");
    std::cout << result << " " << state << std::endl;
  }
  std::cout << "PASS driver_own_checkpoint" << std::endl;
  return 0;
}
