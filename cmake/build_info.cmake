# Writes app/cli/build_info.h, if what it says has changed. Runs with each build, since a commit configures nothing.
#
#   cmake -D SOURCE=DIR -D OUTPUT=FILE -D COMPILER=TEXT -D BUILD_TYPE=NAME -D CUDA=VERSION -D STATIC=true|false -P build_info.cmake
set(COMMIT "")
find_program(GIT git)
function(ask_git result)
  execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE} ${ARGN} OUTPUT_VARIABLE answer ERROR_QUIET
                  RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status)
    set(answer "unknown")
  endif()
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()
if(GIT)
  ask_git(above rev-parse --show-cdup)  # empty at a checkout's top; sources inside of another checkout are not its own
  ask_git(commit rev-parse HEAD)
  ask_git(changes status --porcelain --untracked-files=no)
  if(above STREQUAL "" AND NOT commit STREQUAL "unknown")
    set(COMMIT ${commit})
    if(NOT changes STREQUAL "")
      string(APPEND COMMIT "-dirty")
    endif()
  endif()
endif()
configure_file(${SOURCE}/app/cli/build_info.h.in ${OUTPUT} @ONLY)
