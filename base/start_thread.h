// std::thread throws where the system starts no more threads, which ends the whole process, with
// everybody else's work in it.
#pragma once

#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

namespace longwire::base {

// False with errno if no thread can be started; `body` may be gone then.
template <class Body>
[[nodiscard]] bool StartThread(std::thread* thread, Body&& body) {
  try {
    *thread = std::thread(std::forward<Body>(body));
    return true;
  } catch (const std::system_error& problem) {
    errno = problem.code().value();
    return false;
  }
}

}  // namespace longwire::base
