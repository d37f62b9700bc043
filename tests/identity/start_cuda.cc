// A program that does nothing but start CUDA: prints what cuInit answers. An argument is the
// library to start.
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** arguments) {
  void* library = dlopen(count > 1 ? arguments[1] : "libcuda.so.1", RTLD_NOW);
  auto* start =
      library == nullptr ? nullptr : reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
  if (start == nullptr) return 1;
  std::printf("cuInit: %d\n", start(0));
  return 0;
}
