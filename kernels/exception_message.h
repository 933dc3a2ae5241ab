// What to tell the user of an exception, also of those that the standard library throws.
#pragma once

#include <string>

namespace ringlet {

/// what() of the exception that is being handled. For memory, threads and paths, of which the
/// standard library says little, a message with a remedy. Call inside a catch block.
std::string message_of_current_exception();

}  // namespace ringlet
