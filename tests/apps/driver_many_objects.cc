// Many modules with a variable each, streams that come and go, functions' attributes and graphs,
// for sessions that move.
//
//   driver_many_objects COUNT        makes COUNT, and with each line on standard input (a number)
//   that
//                                    number more; runs the kernels of all
//   driver_many_objects COUNT busy   makes, uses and destroys some all the time, until its standard
//                                    input ends
//
// Each kernel counts its launches in its module's variable; at the end all are what they have to
// be.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "driver_program.h"

static const char kText[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 launches = NUMBER;
.visible .entry Count()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, launches;
  atom.global.add.u32 %r1, [%rd1], 1;
  ret;
}
)";
constexpr int kStreamsEach = 8;  // that come and go
constexpr int kGraphEvery = 8;   // objects

struct Object {
  unsigned first = 0;  // the variable's value in the image
  unsigned launched = 0;
  CUmodule module = nullptr;
  CUfunction count = nullptr;
  CUstream stream = nullptr;
  CUgraphExec graph = nullptr;
};

static void ComeAndGo() {
  for (int i = 0; i < kStreamsEach; ++i) {
    CUstream passing = nullptr;
    CHECK_DRIVER(cuStreamCreate(&passing, CU_STREAM_NON_BLOCKING));
    CHECK_DRIVER(cuStreamDestroy(passing));
  }
}

static Object Make(unsigned number) {
  Object made;
  made.first = 1000 + number;
  std::string text = kText;
  text.replace(text.find("NUMBER"), std::strlen("NUMBER"), std::to_string(made.first));
  CHECK_DRIVER(cuModuleLoadData(&made.module, text.c_str()));
  CHECK_DRIVER(cuModuleGetFunction(&made.count, made.module, "Count"));
  CHECK_DRIVER(cuFuncSetAttribute(made.count, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  static_cast<int>(1024 + number % 64)));
  CHECK_DRIVER(cuStreamCreate(&made.stream, CU_STREAM_NON_BLOCKING));
  ComeAndGo();
  if (number % kGraphEvery != 0) return made;
  CUgraph graph = nullptr;
  CHECK_DRIVER(cuStreamBeginCapture(made.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_DRIVER(cuLaunchKernel(made.count, 1, 1, 1, 1, 1, 1, 0, made.stream, nullptr, nullptr));
  CHECK_DRIVER(cuStreamEndCapture(made.stream, &graph));
  CHECK_DRIVER(cuGraphInstantiate(&made.graph, graph, 0));
  CHECK_DRIVER(cuGraphDestroy(graph));
  return made;
}

static void Use(Object& object) {
  CHECK_DRIVER(cuLaunchKernel(object.count, 1, 1, 1, 1, 1, 1, 0, object.stream, nullptr, nullptr));
  ++object.launched;
  if (object.graph == nullptr) return;
  CHECK_DRIVER(cuGraphLaunch(object.graph, object.stream));
  ++object.launched;
}

static void Compare(const Object& object) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  unsigned found = 0, size = 0;
  int dynamic = 0;
  CHECK_DRIVER(cuStreamSynchronize(object.stream));
  CHECK_DRIVER(cuModuleGetGlobal(&address, &bytes, object.module, "launches"));
  CHECK_DRIVER(cuMemcpyDtoH(&found, address, sizeof found));
  EXPECT(found == object.first + object.launched, "module %u: its kernel ran %u times, not %u",
         object.first - 1000, found - object.first, object.launched);
  CHECK_DRIVER(
      cuFuncGetAttribute(&dynamic, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, object.count));
  size = 1024 + (object.first - 1000) % 64;
  EXPECT(dynamic == static_cast<int>(size), "%d bytes of shared memory, not %u", dynamic, size);
}

static void Destroy(const Object& object) {
  if (object.graph != nullptr) CHECK_DRIVER(cuGraphExecDestroy(object.graph));
  CHECK_DRIVER(cuStreamDestroy(object.stream));
  CHECK_DRIVER(cuModuleUnload(object.module));
}

static std::vector<Object> objects;
static unsigned made = 0;

static void MakeMore(unsigned count) {
  for (unsigned i = 0; i < count; ++i) objects.push_back(Make(made++));
  for (Object& object : objects) Use(object);
}

static bool InputEnds() {
  pollfd input{0, POLLIN, 0};
  char byte = 0;
  return poll(&input, 1, 0) > 0 && read(0, &byte, 1) <= 0;
}

// One that stays and is used, and one that goes again at once.
static void BeBusy() {
  while (!InputEnds()) {
    CUdeviceptr memory = 0;
    CHECK_DRIVER(cuMemAlloc(&memory, size_t{4} << 20));
    CHECK_DRIVER(cuMemsetD32(memory, 7, 1 << 20));
    objects.push_back(Make(made++));
    Object passing = Make(made++);
    Use(passing);
    Compare(passing);
    Destroy(passing);
    for (size_t i = objects.size() - 1; i < objects.size(); i -= 16) Use(objects[i]);
    unsigned found = 0;
    CHECK_DRIVER(cuMemcpyDtoH(&found, memory + (size_t{4} << 20) - 4, sizeof found));
    EXPECT(found == 7, "the memory has %u", found);
    CHECK_DRIVER(cuMemFree(memory));
  }
}

int main(int count, char** words) {
  const unsigned first = count > 1 ? static_cast<unsigned>(std::atoi(words[1])) : 16;
  CUdevice device = 0;
  OpenContext(&device);
  MakeMore(first);
  for (const Object& object : objects) Compare(object);
  std::cout << "READY" << std::endl;
  if (count > 2 && std::strcmp(words[2], "busy") == 0) BeBusy();
  for (std::string line; std::getline(std::cin, line);) {
    MakeMore(static_cast<unsigned>(std::atoi(line.c_str())));
    std::cout << "MADE " << made << std::endl;
  }
  for (const Object& object : objects) Compare(object);
  std::cout << "PASS driver_many_objects: " << made << std::endl;
  return 0;
}
