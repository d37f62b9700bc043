// An object that lives until the process ends and is never torn down: threads of ours and calls
// from exit handlers may still use it while the program's own destructors run.
#pragma once

#include <new>
#include <utility>

namespace longwire::shim {

template <class T>
class NeverDestroyed {
 public:
  template <class... Arguments>
  explicit NeverDestroyed(Arguments&&... arguments) {
    new (storage_) T(std::forward<Arguments>(arguments)...);
  }
  T& operator*() { return *reinterpret_cast<T*>(storage_); }
  T* operator->() { return reinterpret_cast<T*>(storage_); }

 private:
  alignas(T) unsigned char storage_[sizeof(T)];
};

}  // namespace longwire::shim
