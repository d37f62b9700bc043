#include "softgpu/driver/device/context.h"

#include "softgpu/driver/device/green.h"
#include "softgpu/driver/device/peers.h"
#include "softgpu/driver/memory/address_space.h"
#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/module/module.h"
#include "softgpu/driver/stream/stream.h"
#include "softgpu/engine/engine.h"

namespace softgpu {

Context* MakeContext(int device, bool primary) {
  Driver& driver = Driver::Get();
  auto context = std::make_shared<Context>();
  context->device = device;
  context->primary = primary;
  context->home = context.get();
  context->multiprocessors = DeviceShape::kMultiprocessors;
  context->id = driver.next_id++;
  context->limits[CU_LIMIT_STACK_SIZE] = 1024;  // bytes, native defaults
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = size_t{1} << 20;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = size_t{8} << 20;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = kPendingLaunches;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  context->legacy_stream = std::make_shared<Stream>(context.get(), CU_STREAM_DEFAULT, 0, true);
  context->streams.push_back(context->legacy_stream);
  return driver.contexts.Add(std::move(context));
}

void TearDown(Context& context) {
  Driver& driver = Driver::Get();
  EndGreenContextsOf(context);
  context.cancelled = true;
  SynchronizeContext(context);
  ForgetPeers(context);
  for (auto& module : driver.modules.All()) {
    if (module->context == &context) UnloadModule(*module);
  }
  ForgetInLibraries(context);
  ForgetArrays(context);
  for (auto& stream : driver.streams.All()) {
    if (&stream->context() == &context) driver.streams.Remove(stream.get());
  }
  for (auto& event : driver.events.All()) {
    if (event->context == &context) driver.events.Remove(event.get());
  }
  {
    base::MutexLock lock(Driver::mutex);
    for (auto& stream : context.streams) {
      stream->capture.reset();
      CloseStream(*stream);
    }
    context.streams.clear();
    context.legacy_stream = std::make_shared<Stream>(&context, CU_STREAM_DEFAULT, 0, true);
    context.streams.push_back(context.legacy_stream);
  }
  AddressSpace::Get().FreeAllOf(&context);
  context.late_error = 0;
  context.cancelled = false;
}

}  // namespace softgpu
