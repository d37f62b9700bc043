#include "client-shim/mirror/running_work.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "client-shim/session/session.h"

namespace longwire::shim {
namespace {

// After this number of moments without such work the thread sleeps until work is queued.
constexpr int kIdleMoments = 20;

}  // namespace

Progress UnfinishedStreams() {
  Progress progress;
  for (StreamPoint& point : UnfinishedWorkOfAll()) {
    if (!point.stream->internal) progress.insert({point.stream->id, point.stream->finished.load()});
    Release(point.stream);
  }
  return progress;
}

bool AwaitRunningWork(Mirrors& mirrors, uint64_t* looked) {
  Progress last;
  uint64_t works = 0;  // when unfinished ones were looked for
  for (int idle = 0; ClientSession::over() == CUDA_SUCCESS;) {
    {
      base::MutexLock lock(mirrors.mutex);
      mirrors.watcher_sleeps = idle >= kIdleMoments;
      while (mirrors.watcher_sleeps && mirrors.works == works) mirrors.work_begun.Wait(lock);
      if (mirrors.watcher_sleeps) idle = 0;
      mirrors.watcher_sleeps = false;
      works = mirrors.works;
    }
    std::this_thread::sleep_for(kMoment);
    Progress now = UnfinishedStreams();
    const bool runs = std::ranges::any_of(now, [&](const auto& one) { return last.contains(one); });
    if (runs) return true;
    idle = now.empty() ? idle + 1 : 0;
    // Work that was too short may have left something, and the program has asked for nothing.
    if (idle == kIdleMoments && mirrors.handed.load() && *looked != works) {
      *looked = works;
      return true;
    }
    last = std::move(now);
  }
  return false;
}

}  // namespace longwire::shim
