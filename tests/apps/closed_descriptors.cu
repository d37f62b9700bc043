// A program that has been started with standard descriptors closed, or that closes and replaces
// descriptors which it does not know: before, between or after its CUDA calls, or all the time.
//
//   closed_descriptors REPORT print|before|between|after|beside|replaced|until-error
//
// Prints a line for each step as any program does. REPORT is a file, in which it says at its end
// how many calls failed and what came out. Exit code 0: all is right; 3: an error was reported,
// nothing was wrong; 4: something is wrong.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

constexpr int kSteps = 40;
constexpr unsigned kAtFirst = 0x01010101;    // each byte is one
constexpr size_t kLarge = size_t{12} << 20;  // takes the ways of large copies
constexpr int kReplaced = 64;                // numbers 3 to this one

static int failures = 0;
static cudaError_t first_failure = cudaSuccess;
static std::string wrong;

static bool Good(cudaError_t code) {
  if (code == cudaSuccess) return true;
  if (failures++ == 0) first_failure = code;
  return false;
}

__global__ void AddOne(unsigned* values) { values[threadIdx.x] += 1; }

static void CloseAll() { syscall(SYS_close_range, 3U, ~0U, 0U); }

// Something of the program's own stands at every number; nothing may be written to it.
static const char* kScratch = "/proc/self/fd/3";
static void ReplaceAll(const std::string& report) {
  int scratch = open((report + ".scratch").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int number = 3; number <= kReplaced; ++number) {
    if (number != scratch) dup2(scratch, number);
  }
}

static void CheckReplaced() {
  char path[512] = "";
  if (readlink(kScratch, path, sizeof path - 1) < 0 || std::strstr(path, ".scratch") == nullptr) {
    wrong += " a number is not the program's own any more;";
  }
  for (int number = 3; number <= kReplaced; ++number) {
    if (lseek(number, 0, SEEK_END) != 0) wrong += " a descriptor was written to or closed;";
  }
}

struct Work {
  unsigned* device = nullptr;
  unsigned* pinned = nullptr;
  int count = kLarge / sizeof(unsigned);

  bool Begin() {
    return Good(cudaMalloc(&device, kLarge)) && Good(cudaMemset(device, 1, kLarge)) &&
           Good(cudaMallocHost(&pinned, kLarge));
  }
  void Step(int number) {
    AddOne<<<1, 256>>>(device);
    Good(cudaGetLastError());
    std::printf("step %d\n", number);
    std::fflush(stdout);
    Good(cudaDeviceSynchronize());
  }
  void Compare(const unsigned* values, const char* what) {
    for (int i = 0; i < count; ++i) {
      if (values[i] == kAtFirst + (i < 256 ? kSteps : 0)) continue;
      wrong += std::string(" ") + what + " are wrong at " + std::to_string(i) + ": " +
               std::to_string(values[i]) + ";";
      return;
    }
  }
  void End() {
    std::vector<unsigned> values(count);
    if (Good(cudaMemcpy(values.data(), device, kLarge, cudaMemcpyDeviceToHost)) && failures == 0) {
      Compare(values.data(), "values");
    }
    if (Good(cudaMemcpy(pinned, device, kLarge, cudaMemcpyDeviceToHost)) && failures == 0) {
      Compare(pinned, "pinned values");
    }
    unsigned* late = nullptr;
    if (Good(cudaMallocHost(&late, kLarge)) &&
        Good(cudaMemcpy(device, values.data(), kLarge, cudaMemcpyHostToDevice)) &&
        Good(cudaMemcpy(late, device, kLarge, cudaMemcpyDeviceToHost)) && failures == 0) {
      Compare(late, "values that went up and down");
    }
    Good(cudaFreeHost(late));
    Good(cudaFreeHost(pinned));
    Good(cudaFree(device));
  }
};

// Says READY, then works until that fails.
static int StepsWithoutEnd(Work* work) {
  CloseAll();
  std::printf("READY\n");
  while (failures == 0) work->Step(0);
  std::printf("%s\n", cudaGetErrorName(first_failure));
  return 3;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string report = words[1], mode = words[2];
  std::atomic<bool> over{false};
  std::thread closer;
  if (mode == "before") CloseAll();
  if (mode == "beside") {
    closer = std::thread([&] {
      while (!over) CloseAll();
    });
  }
  Work work;
  if (work.Begin()) {
    if (mode == "between") CloseAll();
    if (mode == "until-error") return StepsWithoutEnd(&work);
    if (mode == "replaced") ReplaceAll(report);
    for (int i = 0; i < kSteps; ++i) {
      work.Step(i);
      if (mode == "between" && i % 8 == 0) CloseAll();
    }
    if (mode == "after") CloseAll();
    work.End();
    if (mode == "replaced") CheckReplaced();
  }
  over = true;
  if (closer.joinable()) closer.join();

  std::FILE* file = std::fopen(report.c_str(), "w");
  if (file == nullptr) return 5;
  for (int number = 0; number < 3; ++number) {
    char link[256] = "closed";
    const std::string path = "/proc/self/fd/" + std::to_string(number);
    ssize_t length = readlink(path.c_str(), link, sizeof link - 1);
    if (length > 0) link[length] = 0;
    // The report may be one of them itself.
    if (number != fileno(file)) std::fprintf(file, "%d %s\n", number, link);
  }
  std::fprintf(file, "failures %d, first %s, wrong:%s\n", failures, cudaGetErrorName(first_failure),
               wrong.empty() ? " nothing" : wrong.c_str());
  std::fclose(file);
  return !wrong.empty() ? 4 : failures != 0 ? 3 : 0;
}
