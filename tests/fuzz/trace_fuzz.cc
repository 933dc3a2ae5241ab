// Chrome traces.
#include "base/files/atomic_file.h"
#include "tests/fuzz/fuzz.h"
#include "train/telemetry/trace_reader.h"

namespace ringlet::fuzz {

std::vector<std::string> seeds() {
  return {R"({"displayTimeUnit":"ms","traceEvents":[
{"name":"process_name","ph":"M","pid":0,"args":{"name":"rank 0"}},
{"name":"thread_name","ph":"M","pid":0,"tid":1,"args":{"name":"compute"}},
{"name":"conv2d","cat":"kernel","ph":"X","ts":0.000,"dur":2.500,"pid":0,"tid":1},
{"name":"ring","cat":"collective","ph":"X","ts":1.5,"dur":2,"pid":0,"tid":2,"args":{"bytes":512,"peer":1}}
]}
)",
          R"({"traceEvents":[]})", R"({"other":[{"ts":1}],"traceEvents":[{"ph":"B"},7,[1]]})",
          "[]"};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  fuzz::reads<FileError>([&] {
    train::parse_trace(fuzz::text_of(data, size), "fuzz", [](const train::TraceSpan& span) {
      fuzz::promise(span.duration_us >= 0, "no span ends before it begins");
    });
  });
  return 0;
}
