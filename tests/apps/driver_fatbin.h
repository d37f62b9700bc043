// The kernels of the driver-API programs as nvcc's fat binary, linked into the program, so that it
// runs anywhere; KERNELS_FATBIN is the file's path at build time.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "driver_check.h"

asm(".section .rodata\n.balign 16\nkernels_fatbin:\n.incbin \"" KERNELS_FATBIN
    "\"\nkernels_fatbin_end:\n.byte 0\n.text\n");
extern "C" const char kernels_fatbin[];
extern "C" const char kernels_fatbin_end[];

// The same as a file, for as long as this lives.
struct FatbinFile {
  std::string path = "/tmp/longwire-fatbin-XXXXXX";
  FatbinFile() {
    const int descriptor = mkstemp(path.data());
    EXPECT(descriptor >= 0, "no file can be made in /tmp");
    close(descriptor);
    std::ofstream(path, std::ios::binary)
        .write(kernels_fatbin, kernels_fatbin_end - kernels_fatbin);
  }
  ~FatbinFile() { unlink(path.c_str()); }
  FatbinFile(const FatbinFile&) = delete;
  FatbinFile& operator=(const FatbinFile&) = delete;
};
