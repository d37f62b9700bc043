// What the wire costs on one host: appending a record, a hop through a ring, encoding.
#include <benchmark/benchmark.h>

#include <thread>

#include "wire/buffer.h"
#include "wire/record.h"
#include "wire/rings/ring.h"

namespace longwire::wire {
namespace {

constexpr size_t kRing = size_t{8} << 20;
constexpr size_t kLaunchBytes = 96;  // a record header and a small launch

// Appending one launch-sized record while a reader keeps the ring empty.
void AppendRecord(benchmark::State& state) {
  auto memory = RingMemory::Create(kRing);
  RingProducer producer(memory);
  RingConsumer consumer(memory);
  char launch[kLaunchBytes] = {};
  for ([[maybe_unused]] auto _ : state) {
    std::byte* to = producer.Reserve(kLaunchBytes);
    if (to == nullptr) {
      state.PauseTiming();
      consumer.Advance(consumer.Available().size());
      consumer.Release(consumer.cursor());
      state.ResumeTiming();
      to = producer.Reserve(kLaunchBytes);
    }
    std::memcpy(to, launch, kLaunchBytes);
    producer.Commit(kLaunchBytes);
  }
}
BENCHMARK(AppendRecord);

// There and back through two rings between two threads that spin for at most 50 us.
void RingRoundTrip(benchmark::State& state) {
  auto up = RingMemory::Create(kRing);
  auto down = RingMemory::Create(kRing);
  std::chrono::microseconds spin(state.range(0));
  std::thread echo([&] {
    RingConsumer in(up);
    RingProducer out(down);
    while (!up->closed()) {
      if (!in.Wait(spin, Deadline::max())) continue;
      in.Advance(in.Available().size());
      in.Release(in.cursor());
      out.Reserve(kLaunchBytes);
      out.Commit(kLaunchBytes);
    }
  });
  RingProducer out(up);
  RingConsumer in(down);
  for ([[maybe_unused]] auto _ : state) {
    out.Reserve(kLaunchBytes);
    out.Commit(kLaunchBytes);
    in.Wait(spin, Deadline::max());
    in.Advance(in.Available().size());
    in.Release(in.cursor());
  }
  up->Close(0);
  echo.join();
}
BENCHMARK(RingRoundTrip)->Arg(0)->Arg(50)->UseRealTime();

void EncodeLaunch(benchmark::State& state) {
  std::byte memory[256];
  for ([[maybe_unused]] auto _ : state) {
    Writer writer{std::span<std::byte>(memory)};
    writer.U64(7);
    for (int i = 0; i < 8; ++i) writer.U32(1);
    writer.Bytes(std::span<const std::byte>(memory, 32));
    benchmark::DoNotOptimize(writer.size());
  }
}
BENCHMARK(EncodeLaunch);

}  // namespace
}  // namespace longwire::wire

BENCHMARK_MAIN();
