# The guard as a program of its own that needs the C library alone; src/engine/agents/guard_image.c takes it into weft, so it is not
# installed. With a sanitizer weft itself is the guard, so that the sanitizer sees it work.
#
# It carries the C library where there is one to link with (libc.a): half of its page faults were those of finding and mapping the shared
# one (docs/decisions/0064-static-guard.md).
if(NOT WEFT_SANITIZE)
  include(CheckCSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fPIE)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
  check_c_source_compiles("#include <unistd.h>\nint main(void) { return fork() < 0; }" WEFT_STATIC_PIE)
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  set(guard_file ${CMAKE_BINARY_DIR}/guard/weft-guard)
  add_executable(weft_guard src/engine/agents/guard.c src/engine/agents/guard_keeper.c src/engine/agents/guard_tree.c src/engine/agents/confine.c src/net/transport/find_program.c)
  target_compile_definitions(weft_guard PRIVATE _GNU_SOURCE WEFT_GUARD_ALONE)
  target_include_directories(weft_guard PRIVATE include src/base src/net src/net/transport src/engine/agents)
  target_link_options(weft_guard PRIVATE -s)
  if(WEFT_STATIC_PIE) # it says -pie itself
    set_property(TARGET weft_guard PROPERTY POSITION_INDEPENDENT_CODE)
    target_compile_options(weft_guard PRIVATE -fPIE -ffunction-sections)
    target_link_options(weft_guard PRIVATE -static-pie -Wl,--gc-sections)
  endif()
  set_target_properties(weft_guard PROPERTIES OUTPUT_NAME weft-guard RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/guard)
  add_dependencies(weft_engine_agents weft_guard)
  set_source_files_properties(src/engine/agents/guard_image.c PROPERTIES COMPILE_DEFINITIONS WEFT_GUARD_IMAGE="${guard_file}"
                                                                  OBJECT_DEPENDS ${guard_file})
endif()
