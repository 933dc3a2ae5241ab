// Devices that --stages names: "conv1..layer2=cuda:0-1,layer3..fc=cuda:2-3".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/device.h"

namespace ringlet::app {

/// "cpu:0", or of GPUs that follow each other "cuda:0-3". Throws UsageError.
std::vector<DeviceId> devices_in(std::string_view text);

/// One behind the other, those of stage 0 first; none where the text names none. Throws UsageError
/// for what names no device, and where stages have not as many.
std::vector<DeviceId> devices_in_stages(const std::string& stages);

}  // namespace ringlet::app
