// PageServer: one page over HTTP, for browsers on this machine alone.
//
//   GET /        the page
//   GET /stamp   a text that is another one for each page
//
// It listens on 127.0.0.1 and nowhere else, and answers only to requests that call it so: a page
// from elsewhere, whose name was made to lead here, gets nothing. Each answer ends its connection.
// One thread serves all clients by turns, so a slow one keeps nobody waiting. A request has 8 KiB
// and 10 seconds; where 64 clients wait at once, the one that has waited longest makes room.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace ringlet::app::report {

class PageServer {
 public:
  /// 0: any free port. Throws Error naming --port where it cannot be had.
  explicit PageServer(int port);
  /// Closes all connections.
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const { return port_; }
  std::string url() const;  ///< "http://127.0.0.1:41234/"

  /// The page from now on; before the first one, clients are told that there is none yet. Any
  /// thread.
  void show(std::string page);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
  int port_ = 0;
  std::jthread thread_;
};

}  // namespace ringlet::app::report
