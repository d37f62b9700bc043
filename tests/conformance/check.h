// One body for two libraries: every check prints a line with what the driver answered, and the
// lines of two libraries are compared (compare.py). Nothing here knows what is right.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace conformance {

// The code of a call, by name. A call that this library falls over is left out: compare.py names
// the lines in CONFORMANCE_LEAVE_OUT.
#define CODE(call)                                              \
  (::conformance::IsLeftOut(__FILE__, __LINE__)                 \
       ? ::conformance::PrintLeftOut(__FILE__, __LINE__, #call) \
       : ::conformance::PrintCode(__FILE__, __LINE__, #call, (call)))
// A value that the driver gave.
#define VALUE(expression) \
  ::conformance::PrintValue(__FILE__, __LINE__, #expression, static_cast<long long>(expression))
#define TEXT(expression) ::conformance::PrintText(__FILE__, __LINE__, #expression, (expression))

bool IsLeftOut(const char* file, int line);
CUresult PrintLeftOut(const char* file, int line, const char* what);
CUresult PrintCode(const char* file, int line, const char* what, CUresult result);
void PrintValue(const char* file, int line, const char* what, long long value);
void PrintText(const char* file, int line, const char* what, const std::string& text);

// A context of its own on the first device, current; destroyed at the end.
class InContext {
 public:
  InContext();
  ~InContext();
  CUcontext context = nullptr;
  CUdevice device = 0;
};

// Kernels: Fill(unsigned* out, unsigned value), Add(unsigned* out, unsigned value), Spin(unsigned*
// out, unsigned rounds), Nothing(); each thread has the element of its number. A variable
// `counter` of 4 bytes, a constant `table` of 64.
extern const char* const kKernels;
CUmodule LoadKernels();
CUresult Launch(CUfunction function, unsigned blocks, unsigned threads, CUstream stream,
                CUdeviceptr out, unsigned value);
// A number that stands for the bytes.
long long Digest(const void* bytes, size_t count);
long long DigestOf(CUdeviceptr address, size_t count);

struct Chapter {
  const char* name;
  void (*run)();
};
extern const std::vector<Chapter> kChapters;

void Arrays();
void Captures();
void Contextless();
void Contexts();
void Copies();
void Devices();
void Events();
void GraphLists();
void Graphs();
void GraphUpdates();
void GreenContexts();
void Images();
void Memory();
void Mistakes();
void Modules();
void PoolKinds();
void Pools();
void Registration();
void Streams();
void VirtualMemory();

}  // namespace conformance
