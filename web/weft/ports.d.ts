import type { RPCTransport } from './weft.js';

export interface Invitation {
    nonce: string;
    /** That of the page that invites. */
    origin: string;
    /** For the end of the frame's address. */
    fragment: string;
}
export declare function invitation(origin?: string): Invitation;

export interface FrameOptions {
    nonce: string;
    /** The frame's; 'null', which is the default, is a sandboxed one. */
    origin?: string;
    /** Milliseconds until the frame must have called; 10000 when absent. */
    timeout?: number;
    signal?: AbortSignal;
    scope?: Window;
}
export declare function frameTransport(frame: HTMLIFrameElement | Window, options: FrameOptions): Promise<RPCTransport>;
export declare function parentTransport(options?: { nonce?: string; origin?: string; scope?: Window }): RPCTransport;
export declare function serviceWorkerTransport(worker: { postMessage(message: any, transfer: Transferable[]): void }): RPCTransport;
export declare function servePorts(onTransport: (transport: RPCTransport, client: any) => void, scope?: any): () => void;
