#include "scheduler/simulate/gpu.h"

#include <algorithm>
#include <cmath>

namespace longwire::scheduler::simulate {

namespace {

// Slices of 50 us against 2,048 us.
constexpr double kBestEffortPart = 50.0 / (50 + 2048);

}  // namespace

double Gpu::Rate(bool best_effort) const {
  const bool both = !classes_[0].kernels.empty() && !classes_[1].kernels.empty();
  const double part = !both ? 1 : best_effort ? kBestEffortPart : 1 - kBestEffortPart;
  return part / static_cast<double>(classes_[best_effort].kernels.size());
}

void Gpu::Serve(Time now) {
  const auto passed = static_cast<double>((now - served_until_).count());
  for (bool best_effort : {false, true}) {
    Class& served = classes_[best_effort];
    if (!served.kernels.empty()) served.service += passed * Rate(best_effort);
  }
  served_until_ = now;
}

void Gpu::Predict() {
  next_end_ = kForever;
  for (bool best_effort : {false, true}) {
    const Class& served = classes_[best_effort];
    if (served.kernels.empty()) continue;
    const double left = (served.kernels.begin()->first - served.service) / Rate(best_effort);
    const Time end = served_until_ + Time(static_cast<int64_t>(std::ceil(std::max(left, 0.0))));
    if (end >= next_end_) continue;
    next_end_ = end;
    next_is_best_effort_ = best_effort;
  }
}

void Gpu::Start(Time now, uint32_t who, bool best_effort, Time length) {
  Serve(now);
  Class& served = classes_[best_effort];
  served.kernels.emplace(served.service + static_cast<double>(length.count()), who);
  Predict();
}

uint32_t Gpu::End(Time now) {
  Serve(now);
  auto& kernels = classes_[next_is_best_effort_].kernels;
  const uint32_t who = kernels.begin()->second;
  kernels.erase(kernels.begin());
  Predict();
  return who;
}

}  // namespace longwire::scheduler::simulate
