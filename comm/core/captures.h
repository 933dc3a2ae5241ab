// Captures: what a transport must hear where CUDA graphs hold its calls (Stream::begin_capture).
// They then run whenever a graph is launched, and no host thread passes through the transport.
#pragma once

namespace ringlet::comm {

class Captures {
 public:
  virtual ~Captures() = default;
  /// From here to capture_ends() the transport's stream may be captured: no other thread may ask
  /// how far it has come.
  virtual void capture_begins() = 0;
  virtual void capture_ends() noexcept = 0;
  /// A graph with such calls was launched. The transport's stream waits until it has run.
  virtual void graph_launched() = 0;
};

/// While it lives, something is captured. `captures` may be null: then a transport has no part.
class CaptureScope {
 public:
  explicit CaptureScope(Captures* captures) : captures_(captures) {
    if (captures_ != nullptr) captures_->capture_begins();
  }
  ~CaptureScope() {
    if (captures_ != nullptr) captures_->capture_ends();
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  Captures* captures_;
};

}  // namespace ringlet::comm
