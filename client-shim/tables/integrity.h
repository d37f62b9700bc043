// The runtime's self-test of the driver: an HMAC over data of the process (its pid, thread, table
// addresses, devices). It is computed here and never forwarded.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

namespace longwire::shim {

struct IntegrityDevice {
  CUuuid uuid;
  int32_t pci_domain;
  int32_t pci_bus;
  int32_t pci_device;
};

struct IntegrityInputs {
  uint32_t driver_version;  // as cuDriverGetVersion answers
  uint32_t version;         // the runtime's argument, 10 × its version + round
  uint32_t process;
  uint32_t thread;              // low half of pthread_self()
  uint64_t runtime_table;       // address of the runtime interface table
  uint64_t integrity_table;     // address of the integrity table
  uint64_t integrity_function;  // its slot 1
  uint64_t seconds;             // the runtime's argument, since 1970
};

// Fills result[0] and result[1].
void AnswerIntegrityCheck(const IntegrityInputs& inputs, std::span<const IntegrityDevice> devices,
                          uint64_t result[2]);

}  // namespace longwire::shim
