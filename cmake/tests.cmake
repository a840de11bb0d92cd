# Every tests/unit/NAME.c is a program of its own that may see everything. Every executable script in tests/cli, tests/interop,
# tests/faults, tests/security and tests/browser is a test of the finished programs. All of them close with "N passed, N failed, N skipped".
enable_testing()

file(GLOB support CONFIGURE_DEPENDS tests/*.c)
add_library(test_support STATIC ${support})
target_include_directories(test_support PUBLIC tests)
target_include_directories(test_support SYSTEM PUBLIC ${PQ_INCLUDE_DIRS})
target_link_libraries(test_support PUBLIC weft_internal weft_program libweft PkgConfig::UV PkgConfig::SSL PkgConfig::ZLIB m)

# ThreadSanitizer is slow and has something to say only where threads may be: around the network and the store, and where a
# test starts some.
file(GLOB_RECURSE net_headers src/net/*.h)
list(TRANSFORM net_headers REPLACE ".*/" "")
list(JOIN net_headers "|" net_headers)
# What is written twice, with SSE2 or AVX2 and without: JSON and UTF-8, the frames and their masks, the store's checksum. Nothing
# else differs in the portable configuration: it has the tests of that, and of what is built right above.
set(differs_portable "^(base_utf8|json_.*|schema.*|frame_.*|http1.*|websocket.*|ws_handshake|peer_.*|scenes|store_crc32|store_damage|passage_files|net_ws|net_http|dialect_suite)$")
set(uses_threads "pthread_create|uv_|weft_(loop_new|connect|serve)|STORE_SUITE|#include \"(${net_headers}|store/world.h|store/postgres_server.h|git_world.h)\"")

file(GLOB sources CONFIGURE_DEPENDS tests/unit/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  file(STRINGS ${source} threads REGEX "${uses_threads}")
  if((WEFT_PORTABLE AND NOT name MATCHES "${differs_portable}") OR (WEFT_SANITIZE STREQUAL "thread" AND NOT threads))
    continue()
  endif()
  add_executable(test_${name} ${source})
  target_link_libraries(test_${name} PRIVATE weft_app test_support)
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 900 ENVIRONMENT "XDG_STATE_HOME=${CMAKE_BINARY_DIR}/state/unit")
  if(threads)
    set_property(TEST ${name} APPEND PROPERTY LABELS threads)
  endif()
endforeach()

# The simulation: thousands of runs of the engine and its clients on virtual time, one for each seed.
file(GLOB sources CONFIGURE_DEPENDS tests/sim/*.c)
add_executable(test_sim ${sources})
target_link_libraries(test_sim PRIVATE weft_app test_support)
set_target_properties(test_sim PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME sim COMMAND test_sim WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(sim PROPERTIES LABELS sim TIMEOUT 900)

# Programs that the scripts in tests/interop talk to; like the examples they see the public headers and nothing else.
file(GLOB sources CONFIGURE_DEPENDS tests/interop/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(interop_${name} ${source})
  target_link_libraries(interop_${name} PRIVATE libweft)
  set_target_properties(interop_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()

# Programs that a test of the store starts in order to kill them.
file(GLOB sources CONFIGURE_DEPENDS tests/store/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(store_${name} ${source})
  target_link_libraries(store_${name} PRIVATE test_support)
  set_target_properties(store_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  foreach(test store_kill store_postgres_faults)
    if(TARGET test_${test})
      add_dependencies(test_${test} store_${name})
    endif()
  endforeach()
endforeach()

# Agents that do not behave, and the tests that start them under a guard, which is the program itself.
file(GLOB sources CONFIGURE_DEPENDS tests/agents/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(agent_${name} ${source})
  target_compile_definitions(agent_${name} PRIVATE _GNU_SOURCE)
  set_target_properties(agent_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  foreach(test process process_image checkers diagnostics builds driver_cli driver_acp driver_acp_odd driver_suite)
    if(TARGET test_${test})
      add_dependencies(test_${test} agent_${name} weft)
    endif()
  endforeach()
endforeach()

file(GLOB scripts CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests
     tests/cli/*.sh tests/cli/*.py tests/interop/*.sh tests/interop/*.mjs tests/interop/*.py tests/faults/*.py tests/security/*.py
     tests/browser/*.mjs)
foreach(script ${scripts})
  execute_process(COMMAND test -x ${PROJECT_SOURCE_DIR}/tests/${script} RESULT_VARIABLE not_executable)
  file(STRINGS ${PROJECT_SOURCE_DIR}/tests/${script} first_line LIMIT_COUNT 1)
  if(not_executable AND first_line MATCHES "^#!") # what others include has no such line
    message(FATAL_ERROR "tests/${script} is a test that would not run: chmod +x")
  endif()
  if(NOT not_executable)
    get_filename_component(label ${script} DIRECTORY)
    add_test(NAME ${script} COMMAND tests/run-script ${CMAKE_BINARY_DIR} tests/${script}
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${script} PROPERTIES LABELS ${label} TIMEOUT 900)
  endif()
endforeach()

# The longest begin first, so that none of them is waited for at the end. The first of these lines is the longest. The numbers say no
# more than the order: what a test costs is measured anew by ctest when it has run once.
set(cost 1000)
foreach(long
    faults/hubs.py faults/worktree_merge.py browser/dashboard_look.mjs cli/clone.sh faults/changes.py cli/layers.sh cli/library.sh faults/worktrees.py
    faults/answers.py cli/headers.sh security/scopes.py faults/aiwg_automation.py faults/escapes.py cli/agents_end.sh interop/acp_sdk.mjs
    faults/growth.py cli/task.sh faults/stops.py faults/questions.py cli/places.sh faults/wire.py cli/daemon.sh interop/acpx.mjs
    browser/webjs_boundaries.mjs faults/approves.py cli/answer.sh faults/disk.py browser/dashboard_flows.mjs faults/past.py sim watcher)
  if(TEST ${long})
    set_tests_properties(${long} PROPERTIES COST ${cost})
  endif()
  math(EXPR cost "${cost} - 10")
endforeach()
