//! What a component needs in place of an operating system: memory and an end.

/// Grows linear memory as needed; where the host sets a limit, growing past it traps.
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

/// A panic is a trap: the host throws the instance away.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
