import type { RPCTransport, Signal, WindowLike } from './weft.js';

export interface Invitation {
    nonce: string;
    /** That of the page that invites. */
    origin: string;
    /** For the end of the frame's address. */
    fragment: string;
}
export declare function invitation(origin?: string): Invitation;

/** An iframe. */
export interface FrameLike {
    readonly contentWindow: WindowLike | null;
}

export interface FrameOptions {
    nonce: string;
    /** The frame's; 'null', which is the default, is a sandboxed one. */
    origin?: string;
    /** Milliseconds until the frame must have called; 10000 when absent. */
    timeout?: number;
    signal?: Signal;
    /** The page's window, unless it is the global one. */
    scope?: object;
}
export declare function frameTransport(frame: FrameLike | WindowLike, options: FrameOptions): Promise<RPCTransport>;
export declare function parentTransport(options?: { nonce?: string; origin?: string; scope?: object }): RPCTransport;
export declare function serviceWorkerTransport(worker: { postMessage(message: any, transfer: any): void }): RPCTransport;
export declare function servePorts(onTransport: (transport: RPCTransport, client: any) => void, scope?: any): () => void;
