# Protocol buffers: the formats of others that Ringlet writes (TensorBoard's, ONNX's), each described by a
# .proto of our own with the format's field numbers and no more than what is used.
#
#   ringlet_proto(TARGET file.proto)
#
# makes the static library TARGET from a file of the calling folder. Who links to it includes the header by
# its path from the root: train/x/y.proto is "train/x/y.pb.h". The code is for the lite runtime, and is ours
# neither to warn about nor to lint.
function(ringlet_proto target file)
  set(generated ${ringlet_BINARY_DIR}/generated)
  get_filename_component(source ${file} ABSOLUTE)
  file(RELATIVE_PATH name ${ringlet_SOURCE_DIR} ${source})
  string(REGEX REPLACE "\\.proto$" ".pb" stem ${generated}/${name})
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${stem}.cc ${stem}.h
    COMMAND protobuf::protoc --proto_path=${ringlet_SOURCE_DIR} --cpp_out=lite:${generated} ${source}
    DEPENDS ${source} protobuf::protoc
    COMMENT "Generating ${name}"
    VERBATIM)
  add_library(${target} STATIC ${stem}.cc ${stem}.h)
  target_compile_options(${target} PRIVATE -w)
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${generated}>)
  set_property(GLOBAL APPEND PROPERTY RINGLET_INSTALLED ${target})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite)
endfunction()
