#include "app/report/page_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <list>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/hash.h"

namespace ringlet::app::report {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostRequest = 8192;  // bytes
constexpr std::size_t kMostClients = 64;
constexpr std::chrono::seconds kPatience(10);  // for a request, and for each part of an answer
constexpr const char* kText = "text/plain; charset=utf-8";

[[noreturn]] void fail(int port) {
  const std::string why = std::generic_category().message(errno);
  throw Error(
      fmt::format("--port {} cannot be served on 127.0.0.1: {}; take another one, or leave "
                  "it out for a free one",
                  port, why));
}

/// Bound to the loopback, and listening.
Descriptor listen_on(int& port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;  // a former server's connections may still be ending
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!socket.open() ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket.get(), any, size) != 0 || ::listen(socket.get(), kMostClients) != 0 ||
      ::getsockname(socket.get(), any, &size) != 0) {
    fail(port);
  }
  port = ntohs(address.sin_port);
  return socket;
}

std::string answer(std::string_view status, const char* type, std::string_view body,
                   bool with_body = true, std::string_view more = "") {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n{}\r\n{}",
      status, type, body.size(), more, with_body ? body : "");
}

std::string refusal(std::string_view status, std::string_view more = "") {
  return answer(status, kText, fmt::format("{}\n", status), true, more);
}

/// The value of a header, by its name in small letters; none where it is not there.
std::string_view header_of(std::string_view head, std::string_view name, bool& is_there) {
  is_there = false;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    const std::size_t colon = line.find(':');
    if (colon != name.size()) continue;
    const auto same = [](char own, char given) {
      return own == std::tolower(static_cast<unsigned char>(given));
    };
    if (!std::equal(name.begin(), name.end(), line.begin(), same)) continue;
    is_there = true;
    line.remove_prefix(colon + 1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    return line;
  }
  return {};
}

struct Page {
  std::string html, stamp;
};

/// What a whole request is answered with.
std::string respond(std::string_view request, const Page& page, int port) {
  const std::string_view line = request.substr(0, request.find_first_of("\r\n"));
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last || !line.substr(last + 1).starts_with("HTTP/1.")) {
    return refusal("400 Bad Request");
  }
  const std::string_view method = line.substr(0, first);
  std::string_view path = line.substr(first + 1, last - first - 1);
  bool is_named = false;
  const std::string_view host =
      header_of(request.substr(std::min(request.find('\n'), request.size())), "host", is_named);
  const auto is_here = [&](std::string_view name) {
    return host == name || host == fmt::format("{}:{}", name, port);
  };
  if (!is_named && line.ends_with("1.1")) return refusal("400 Bad Request");
  if (is_named && !is_here("127.0.0.1") && !is_here("localhost")) return refusal("403 Forbidden");
  if (method != "GET" && method != "HEAD") {
    return refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n");
  }
  path = path.substr(0, path.find('?'));
  const bool with_body = method == "GET";
  if (path == "/stamp") return answer("200 OK", kText, page.stamp, with_body);
  if (path != "/") return refusal("404 Not Found");
  if (page.html.empty()) return refusal("503 Service Unavailable", "Retry-After: 1\r\n");
  return answer("200 OK", "text/html; charset=utf-8", page.html, with_body);
}

struct Client {
  Descriptor socket;
  Clock::time_point until{};  // then it is let go
  std::string request{};
  std::string reply{};  // empty: the request is not whole
  std::size_t sent = 0;
};

/// Whether the whole head has come; a body is never read.
bool is_whole(const std::string& request) {
  return request.find("\r\n\r\n") != std::string::npos || request.find("\n\n") != std::string::npos;
}

}  // namespace

class PageServer::Loop {
 public:
  explicit Loop(int& port)
      : listener_(listen_on(port)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), port_(port) {
    if (!bell_.open()) fail(port);
  }

  void show(std::string html) {
    const std::uint64_t hash = hash_bytes(html.data(), html.size());
    const std::lock_guard lock(mutex_);
    page_ = {std::move(html), fmt::format("{:016x}", hash)};
  }

  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(bell_.get(), &one, sizeof one);
  }

  void run(const std::stop_token& end) {
    constexpr int kLook = 500;  // milliseconds, between two looks at who is late
    std::vector<pollfd> waits;
    while (!end.stop_requested()) {
      waits = {{bell_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Client& client : clients_) {
        waits.push_back(
            {client.socket.get(), static_cast<short>(client.reply.empty() ? POLLIN : POLLOUT), 0});
      }
      if (::poll(waits.data(), waits.size(), kLook) < 0 && errno != EINTR) return;
      auto wait = waits.begin() + 2;
      for (auto client = clients_.begin(); client != clients_.end(); ++wait) {
        const bool goes_on = (wait->revents == 0 || serve(*client)) && Clock::now() < client->until;
        client = goes_on ? std::next(client) : clients_.erase(client);
      }
      if (waits[1].revents != 0) accept();
    }
  }

 private:
  void accept() {
    while (true) {
      Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.open()) return;
      if (clients_.size() == kMostClients) clients_.pop_front();  // the oldest
      clients_.push_back({std::move(socket), Clock::now() + kPatience});
    }
  }

  /// False where the connection has come to its end.
  bool serve(Client& client) { return client.reply.empty() ? read(client) : write(client); }

  bool read(Client& client) {
    char bytes[1024];
    const ssize_t count = ::recv(client.socket.get(), bytes, sizeof bytes, 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    client.request.append(bytes, static_cast<std::size_t>(count));
    if (is_whole(client.request)) {
      const std::lock_guard lock(mutex_);
      client.reply = respond(client.request, page_, port_);
    } else if (client.request.size() > kMostRequest) {
      client.reply = refusal("431 Request Header Fields Too Large");
    }
    return client.reply.empty() || write(client);
  }

  static bool write(Client& client) {
    const std::size_t left = client.reply.size() - client.sent;
    const ssize_t count =
        ::send(client.socket.get(), client.reply.data() + client.sent, left, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    client.sent += static_cast<std::size_t>(count);
    client.until = Clock::now() + kPatience;
    if (client.sent < client.reply.size()) return true;
    ::shutdown(client.socket.get(), SHUT_WR);
    return false;
  }

  Descriptor listener_, bell_;
  int port_;
  std::mutex mutex_;
  Page page_;
  std::list<Client> clients_;
};

PageServer::PageServer(int port)
    : loop_(std::make_unique<Loop>(port)),
      port_(port),
      thread_([this](const std::stop_token& end) { loop_->run(end); }) {}

PageServer::~PageServer() {
  thread_.request_stop();
  loop_->wake();
  thread_.join();
}

std::string PageServer::url() const { return fmt::format("http://127.0.0.1:{}/", port_); }

void PageServer::show(std::string page) { loop_->show(std::move(page)); }

}  // namespace ringlet::app::report
