#include "server/worker/calls/context/context_charges.h"

#include "base/try.h"
#include "server/worker/memory/array_bytes.h"

namespace longwire::worker {

CUresult ContextCharges::Take(WorkerSession& session, const Context& context) {
  for (auto& library : session.libraries.All()) {
    if (library->library == nullptr || library->variable_bytes == 0) continue;
    Charge charge;
    LONGWIRE_TRY(session.charges().Take(context.device, library->variable_bytes, &charge));
    taken_.emplace_back(Charges::Key{Charges::Kind::kLibrary, library->id, context.id},
                        std::move(charge));
  }
  return CUDA_SUCCESS;
}

void ContextCharges::Keep(WorkerSession& session) {
  for (auto& [key, charge] : taken_) session.charges().Keep(key, std::move(charge));
  taken_.clear();
}

void FreeWhatStays(WorkerSession& session, const Context& context) {
  const DriverTable& driver = session.driver();
  Charges& charges = session.charges();
  for (const Charges::Key& key : charges.KeysOf(context.id)) {
    if (key.kind == Charges::Kind::kArray) {
      void* handle = reinterpret_cast<void*>(key.object);
      CUmipmappedArray mipmapped = nullptr;
      bool levels = session.foreign().Find(session.foreign().IdOf(handle), &mipmapped);
      CUresult result = levels ? driver.cuMipmappedArrayDestroy(mipmapped)
                               : driver.cuArrayDestroy(static_cast<CUarray>(handle));
      if (result != CUDA_SUCCESS) continue;
      session.foreign().ForgetObject(handle);
      charges.Drop(key.kind, key.object);
    } else if (key.kind == Charges::Kind::kLimit && key.object < context.limits.size()) {
      auto limit = static_cast<CUlimit>(key.object);
      driver.cuCtxSetLimit(limit, context.limits[key.object]);
      charges.Correct(key, [&] {
        size_t now = 0;
        driver.cuCtxGetLimit(&now, limit);
        return LimitBytes(driver, context.driver_device, limit, now);
      });
    }
  }
}

}  // namespace longwire::worker
