// The compiler's static unwinder asks libc which loaded object an address lies in, by a function
// that libc has only from 2.35 on. This one answers from what every libc tells, so that the library
// loads on older systems too. It runs only when something throws.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>

namespace {

struct Search {
  uintptr_t address;
  dl_find_object* result;
};

int Look(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  uintptr_t low = 0, high = 0;
  const ElfW(Phdr)* frames = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + header.p_vaddr;
    bool holds = header.p_type == PT_LOAD && search->address >= start &&
                 search->address - start < header.p_memsz;
    if (holds) {
      low = start;
      high = start + header.p_memsz;
    }
    if (header.p_type == PT_GNU_EH_FRAME) frames = &header;
  }
  if (high == 0 || frames == nullptr) return 0;
  *search->result = {};
  search->result->dlfo_map_start = reinterpret_cast<void*>(low);
  search->result->dlfo_map_end = reinterpret_cast<void*>(high);
  search->result->dlfo_eh_frame = reinterpret_cast<void*>(info->dlpi_addr + frames->p_vaddr);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(Look, &search) == 1 ? 0 : -1;
}
