// `.rec`: each record by itself, and the list of its pictures. What was read is written again and
// has to come back.
#include "base/data_error.h"
#include "data/record_list.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/records.h"

namespace ringlet::fuzz {

using testing::record_head;
using testing::record_part;

std::vector<std::string> seeds() {
  const std::string png = "\x89PNG\r\n\x1a\nrest";
  return {record_part(0, record_head(0, 0, {2, 3})) + record_part(0, record_head(1, 1) + png),
          record_part(1, record_head(1, 1) + png) + record_part(2, "abcd") + record_part(3, "xy"),
          record_part(0, record_head(1, 1, {1, 2, 3}) + png), record_part(3, "")};
}

}  // namespace ringlet::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ringlet;
  const fuzz::MemoryFile memory(data, size);
  const data::RecordFile file(memory.path());
  for (std::uint64_t offset = 0; offset < size;) {
    const bool read = fuzz::reads<DataError>([&] {
      const data::RecordHead head = file.head(offset);
      fuzz::promise(head.end > offset && head.end <= size, "a record ends within the file");
      if (head.picture_bytes > 0) {
        std::vector<std::uint8_t> bytes;
        file.picture(offset, bytes);
        fuzz::promise(bytes.size() == head.picture_bytes, "a picture is as long as its head says");
        const float label[] = {head.labels[0]};
        const std::string payload = data::record_payload(label, 1, bytes);
        const std::string again = data::as_record(
            {reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size()});
        const fuzz::MemoryFile copy(reinterpret_cast<const std::uint8_t*>(again.data()),
                                    again.size());
        std::vector<std::uint8_t> returned;
        data::RecordFile(copy.path()).picture(0, returned);
        fuzz::promise(returned == bytes, "what is written comes back");
      }
      offset = head.end;
    });
    if (!read) break;
  }
  fuzz::reads<DataError>([&] {
    const data::RecordList list = data::list_records(file);
    fuzz::promise(!list.keys.empty() && list.keys.size() == list.labels.size() &&
                      list.keys.size() == list.offsets.size(),
                  "a list has a picture, and all of each");
    for (const std::int32_t label : list.labels) {
      fuzz::promise(label >= 0 && label < list.identities, "labels are of the identities");
    }
  });
  return 0;
}
