// LibraryCalls: of a transport whose library may keep a thread for ever.
#pragma once

namespace ringlet::comm {

class LibraryCalls {
 public:
  virtual ~LibraryCalls() = default;
  /// Some time after an abort: whether a thread of this process is in a call that should have
  /// returned at once. It never will. Any thread.
  virtual bool is_held() const = 0;
};

}  // namespace ringlet::comm
