#include "base/error.h"

#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

namespace ringlet {

namespace {

constexpr const char* kNoMemory =
    "the machine's memory, or the limit on it (ulimit -v), is used up; use a smaller batch, fewer "
    "replicas or less data";

std::string message_of(const std::system_error& error) {
  if (error.code() != std::errc::resource_unavailable_try_again) return error.what();
  return "no further thread can be started (" + error.code().message() +
         "); raise the limits on memory and threads (ulimit -v, ulimit -u), or use fewer replicas "
         "and threads";
}

}  // namespace

void throw_broken_contract(const char* operation, const char* message, At at) {
  throw ContractError(std::string(operation) + ": " + message, at);
}

std::string message_of_current_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  } catch (const std::length_error&) {  // of a container that is asked for more than there can be
    return kNoMemory;
  } catch (const std::filesystem::filesystem_error& error) {
    return error.path1().string() + ": the file system says: " + error.code().message() +
           "; check the path";
  } catch (const std::system_error& error) {
    return message_of(error);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an unknown error";
  }
}

}  // namespace ringlet
