// PageServer: what it answers to right, wrong, slow and many requests.
#include "app/report/page_server.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "base/error.h"
#include "tests/support/files.h"
#include "tests/support/http_client.h"

namespace ringlet::app::report {
namespace {

using testing::body_of;
using testing::get;
using testing::HttpClient;

bool begins(const std::string& answer, const std::string& status) {
  return answer.starts_with("HTTP/1.1 " + status + "\r\n");
}

std::string answer_to(int port, const std::string& request) {
  const HttpClient client(port);
  client.send(request);
  return client.receive();
}

TEST(PageServer, ServesThePageThatIsShownLast) {
  PageServer server(0);
  EXPECT_TRUE(begins(get(server.port(), "/"), "503 Service Unavailable"));
  server.show("<p>one");
  const std::string first = get(server.port(), "/");
  EXPECT_TRUE(begins(first, "200 OK"));
  for (const char* header : {"Content-Type: text/html; charset=utf-8\r\n", "Content-Length: 6\r\n",
                             "Cache-Control: no-store\r\n"}) {
    EXPECT_NE(first.find(header), std::string::npos) << header;
  }
  EXPECT_EQ(body_of(first), "<p>one");
  const std::string stamp = body_of(get(server.port(), "/stamp"));
  EXPECT_EQ(body_of(get(server.port(), "/stamp?again=1")), stamp);
  server.show("<p>two");
  EXPECT_EQ(body_of(get(server.port(), "/")), "<p>two");
  EXPECT_NE(body_of(get(server.port(), "/stamp")), stamp);
  EXPECT_EQ(body_of(get(server.port(), "/", "HEAD")), "");
  EXPECT_EQ(server.url(), "http://127.0.0.1:" + std::to_string(server.port()) + "/");
}

TEST(PageServer, AnswersBadRequestsAndGoesOn) {
  PageServer server(0);
  server.show("page");
  const int port = server.port();
  EXPECT_TRUE(begins(get(port, "/etc/passwd"), "404 Not Found"));
  EXPECT_TRUE(begins(get(port, "/../../x"), "404 Not Found"));
  EXPECT_TRUE(begins(get(port, "/", "POST"), "405 Method Not Allowed"));
  EXPECT_TRUE(begins(answer_to(port, "\r\n\r\n"), "400 Bad Request"));
  EXPECT_TRUE(begins(answer_to(port, "GET /\r\n\r\n"), "400 Bad Request"));
  EXPECT_TRUE(begins(answer_to(port, "GET / HTTP/1.1\r\n\r\n"), "400 Bad Request"));  // no Host
  EXPECT_TRUE(begins(answer_to(port, std::string("\0\xff\x16\x03\n\n", 6)), "400 Bad Request"));
  EXPECT_TRUE(begins(answer_to(port, "GET / HTTP/1.0\n\n"), "200 OK"));
  EXPECT_TRUE(begins(answer_to(port, "GET / HTTP/1.1\r\nhost:localhost\r\n\r\n"), "200 OK"));
  EXPECT_TRUE(begins(answer_to(port, "GET / HTTP/1.1\r\nX: y\r\n" + std::string(9000, 'a')),
                     "431 Request Header Fields Too Large"));
  EXPECT_EQ(body_of(get(port, "/")), "page");
}

/// A name of somebody else's that was made to lead to this machine.
TEST(PageServer, AnswersToItsOwnNameAlone) {
  PageServer server(0);
  server.show("page");
  EXPECT_TRUE(begins(answer_to(server.port(), "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
                     "403 Forbidden"));
  const HttpClient elsewhere(server.port(), INADDR_LOOPBACK + 1);  // 127.0.0.2
  EXPECT_FALSE(elsewhere.connected());
}

TEST(PageServer, LetsNoSlowClientHoldUpAnother) {
  PageServer server(0);
  const std::string large(20'000'000, 'p');
  server.show(large);
  const HttpClient silent(server.port()), half(server.port()), deaf(server.port());
  half.send("GET / HT");
  deaf.send("GET / HTTP/1.0\r\n\r\n");  // and reads nothing
  std::deque<HttpClient> crowd;
  for (int i = 0; i < 100; ++i) crowd.emplace_back(server.port());
  EXPECT_EQ(body_of(get(server.port(), "/")).size(), large.size());
}

TEST(PageServer, SaysThatAPortIsTaken) {
  const PageServer server(0);
  const std::string message =
      testing::message_of<Error>([&] { const PageServer other(server.port()); });
  EXPECT_TRUE(testing::says(message, {"--port " + std::to_string(server.port()), "127.0.0.1",
                                      "Address already in use", "leave it out"}));
}

TEST(PageServer, LeavesItsPortFree) {
  int port = 0;
  {
    const PageServer server(0);
    port = server.port();
    (void)get(port, "/");
  }
  EXPECT_NO_THROW(PageServer(port).show("again"));
}

}  // namespace
}  // namespace ringlet::app::report
